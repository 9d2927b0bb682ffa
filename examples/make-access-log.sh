#!/usr/bin/env bash
# Makes examples/access.log.gz again: a real nginx writes it while access-log-load.py plays clients on the loopback.
#
# usage: examples/make-access-log.sh [OUT]      (default: access.log.gz beside this script; takes about 90 seconds)
#
# Linux only: every address in 127.0.0.0/8 must be local. Needs no root; touches nothing but OUT and a temporary folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$here/access.log.gz}
PATH=$PATH:/usr/sbin # where Debian keeps nginx, and where users do not look

command -v nginx >/dev/null || { echo "nginx is missing: apt-get install nginx-light" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing: apt-get install python3" >&2; exit 1; }

work=$(mktemp -d)
server= load=
clean_up() {
    for pid in $load $server; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The site: a few files, a few fixed answers. Readable for the workers, which run as nobody when root starts this.
chmod 755 "$work"
mkdir -p "$work"/site/{assets,img,account,downloads,private}
site=$work/site
printf '<!doctype html><title>Teapots</title>\n' | tee "$site/index.html" "$site/sale" >"$site/account/index.html"
head -c 24000 /dev/zero >"$site/assets/app.js"
head -c 6000 /dev/zero >"$site/assets/style.css"
for i in 1 2 3; do head -c $((i * 9000)) /dev/zero >"$site/img/$i.png"; done
head -c 150000 /dev/zero >"$site/downloads/catalogue.pdf"
find "$site" -type f -exec touch -d '2024-01-01 00:00:00 UTC' {} + # for the answers "not modified"
printf '%s:{PLAIN}tea\n' anna 'john doe' bob >"$work/users"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 2;
pid $work/nginx.pid;
error_log $work/error.log warn;
events { worker_connections 512; }
http {
    log_format replay '\$remote_addr - \$remote_user [\$time_local] "\$request" \$status \$body_bytes_sent '
                      '"\$http_referer" "\$http_user_agent" \$msec \$request_time';
    access_log $work/access.log replay;
    client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
    keepalive_timeout 300s;
    keepalive_requests 1000000; # a client keeps its connections for the whole run
    default_type text/html;
    server {
        listen 127.0.0.1:$port;
        server_name shop.example;
        root $site;
        location /products/ { return 200 "<!doctype html><title>\$uri</title>\n"; }
        location /search { return 200 "<!doctype html><title>Found</title>\n"; }
        location = /cart { return 303 /products/; }
        location = /health { return 204; }
        location /api/ { default_type application/json; return 200 '{"ok":true}\n'; }
        location /account/ { auth_basic account; auth_basic_user_file $work/users; }
        location /downloads/ { limit_rate 60k; }
        location /private/ { deny all; }
    }
}
CONF

nginx -e "$work/error.log" -p "$work" -c "$work/nginx.conf" &
server=$!
for _ in $(seq 50); do
    kill -0 "$server" 2>/dev/null || { echo "nginx did not start" >&2; exit 1; }
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 0.1
done

timeout 180 python3 "$here/access-log-load.py" "$port" & # so that a signal need not wait for its end
load=$!
wait "$load"
load=
kill -QUIT "$server" # lets the last requests end
wait "$server"
server=

# Every request has its line; otherwise the log does not say what was sent.
planned=$(python3 "$here/access-log-load.py" "$port" --plan)
lines=$(wc -l <"$work/access.log")
if [ "$lines" -ne "$planned" ]; then
    echo "the log has $lines lines for $planned requests" >&2
    exit 1
fi

gzip -9n <"$work/access.log" >"$work/access.log.gz"
cp "$work/access.log.gz" "$out"
awk '
    { n[$1]++; t = $(NF - 1); if (!first || t < first) first = t; if (t > last) last = t }
    END {
        for (client in n) { clients++; printf "%8d  %s\n", n[client], client | "sort -k2 -V" }
        close("sort -k2 -V")
        printf "%d lines, %.1f s, %d clients\n", NR, last - first, clients
    }' "$work/access.log"
echo "$(stat -c %s "$out") bytes in $out, by $(nginx -v 2>&1 | sed 's/nginx version: //')"
