#!/usr/bin/env python3
"""Opens pages and pictures in headless Chromium and takes screenshots of them.

    ci/pictures-check.py FOLDER

Every HTML and SVG file in FOLDER must be complete, ask for nothing from anywhere, leave the console empty, show
what it is about, and be no wider than the screen: at the width of a telephone and of a desk, light and dark. SVG
must be well-formed XML. Standard library only.
"""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

BROWSER = "chromium"
SCREENS = {"phone": (390, 4200), "desk": (1280, 3000)}
# What the browser itself has to say about the machine it runs on.
OURS = re.compile(r"CONSOLE")
# Tells in the title whether the page fits, and which colour lies behind it.
PROBE = """<!doctype html><meta charset="utf-8"><style>body{margin:0}iframe{border:0;width:%dpx;height:%dpx}</style>
<iframe src="%s"></iframe><script>onload=()=>{const d=document.querySelector("iframe").contentDocument,
r=d.documentElement;document.title=JSON.stringify([r.scrollWidth<=%d,d.body?getComputedStyle(d.body).backgroundColor:"",
d.querySelectorAll("svg").length,r.scrollHeight])}</script>"""


def browse(page, *options):
    with tempfile.TemporaryDirectory() as profile:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
        command += ["--allow-file-access-from-files", f"--user-data-dir={profile}", "--disable-background-networking"]
        # Whatever is not a file fails, and its failure is logged to the console.
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", *options, f"file://{page}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def pixels(path):
    """The pixels of a PNG as rows of bytes, as they are stored: enough to see whether anything is drawn."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    place, packed = 8, b""
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + size]
        place += size + 12
    return zlib.decompress(packed)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = os.path.abspath(sys.argv[1])
    faults, seen = [], 0
    files = sorted(name for name in os.listdir(folder) if name.endswith((".html", ".svg")))
    for name in files:
        path = os.path.join(folder, name)
        if name.endswith(".svg"):
            root = xml.etree.ElementTree.parse(path).getroot()
            if root.tag != "{http://www.w3.org/2000/svg}svg" or len(root) < 10:
                faults.append(f"{name}: not a picture: {root.tag} of {len(root)} elements")
        with open(path, encoding="utf-8") as file:
            asked = re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)[^"']*|@import|url\(|<script""", file.read())
        if asked:
            faults.append(f"{name}: asks for {asked}")
        for screen, (width, height) in SCREENS.items():
            for scheme in ("light", "dark") if name.endswith(".html") else ("light",):
                probe = os.path.join(folder, f".probe-{screen}-{scheme}.html")
                with open(probe, "w", encoding="utf-8") as file:
                    file.write(PROBE % (width, height, name, width))
                shot = os.path.join(folder, f"{name}-{screen}-{scheme}.png")
                options = ["--blink-settings=preferredColorScheme=" + ("0" if scheme == "dark" else "1")]
                said = browse(probe, *options, "--dump-dom")
                drawn = browse(probe, *options, f"--window-size={max(width, 500)},{height}", f"--screenshot={shot}")
                os.remove(probe)
                seen += 1
                for line in (said.stderr + drawn.stderr).splitlines():
                    if OURS.search(line):
                        faults.append(f"{name} on a {screen}, {scheme}: {line}")
                told = re.search(r"<title>\[(true|false),\"(.*?)\",(\d+),(\d+)\]</title>", said.stdout)
                if not told:
                    faults.append(f"{name} on a {screen}, {scheme}: it did not load")
                    continue
                fits, back, pictures, _ = told.groups()
                if name.endswith(".html"):
                    wanted = "rgb(13, 17, 23)" if scheme == "dark" else "rgb(255, 255, 255)"
                    if fits != "true":
                        faults.append(f"{name} on a {screen}: wider than the screen")
                    if back != wanted:
                        faults.append(f"{name} on a {screen}, {scheme}: the page is {back}, not {wanted}")
                    if pictures != "4":
                        faults.append(f"{name}: {pictures} pictures, not 4")
                if len(set(pixels(shot))) < 8:
                    faults.append(f"{shot}: nothing is drawn")
    print("\n".join(faults))
    print(f"{seen} views of {len(files)} files, {len(faults)} faults; screenshots in {folder}")
    sys.exit(bool(faults) or seen < 10)


if __name__ == "__main__":
    main()
