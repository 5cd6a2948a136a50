#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# A static web server that misbehaves. http://127.0.0.1:PORT/FAULT/... serves the folder and applies that fault to blobs, or to every file
# if the fault is written "FAULT!". Prints its port. Appends "METHOD PATH RANGE HOST HEADERS" of every request to the log, with all headers,
# so that tests see where a token was sent. Listens at 127.0.0.1 and 127.0.0.2.
# It also imitates the Hugging Face Hub: HF_ENDPOINT=http://127.0.0.1:PORT/FAULT serves /api/models/ORG/NAME/revision/REVISION and
# /ORG/NAME/resolve/COMMIT/FILE from FOLDER/ORG/NAME. Large files are redirected to another host, which applies the fault. A repository with
# a file ".private" requires a token.
# fault_server.py FOLDER LOG [CERTIFICATE KEY]
import gzip
import http.server
import json
import os
import re
import ssl
import sys
import threading
import time

FOLDER, LOG = sys.argv[1], sys.argv[2]
COMMIT, TOKEN = "c0ffee" * 6 + "c0ff", "hf_secret"
LARGE = (".safetensors", ".h5", ".html", "report.json")  # .gitattributes of a repository
LOCK = threading.Lock()
COUNTS = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def head(self, status, length, **headers):
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def drop(self):
        self.wfile.flush()
        self.close_connection = True

    def redirect(self, to):
        self.head(302, 0, Location=to)

    # Returns the content for one of the Hub's addresses, or None if the answer has been sent.
    def hub(self, prefix, match):
        _, repository, kind, revision, name = match.groups()
        folder = os.path.join(FOLDER, repository)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if not os.path.isdir(folder) or (os.path.exists(os.path.join(folder, ".private")) and not known):
            return self.head(404 if known else 401, 0, X_Error_Code="RepoNotFound")
        if kind == "revision":
            if revision not in ("main", "refs%2Fpr%2F1", COMMIT):
                return self.head(404, 0, X_Error_Code="RevisionNotFound")
            files = [os.path.relpath(os.path.join(at, file), folder) for at, _, names in os.walk(folder) for file in names]
            try:
                with open(os.path.join(FOLDER, "listing.json"), "rb") as file:
                    return file.read()
            except OSError:
                return json.dumps({"id": repository, "sha": COMMIT, "private": False, "siblings": [{"rfilename": file} for file in files]}).encode()
        if revision != COMMIT or not os.path.isfile(os.path.join(folder, name)):
            return self.head(404, 0, X_Error_Code="EntryNotFound")
        if name.endswith(LARGE):
            return self.redirect(f"http://127.0.0.2:{self.server.server_port}/{prefix}/cdn/{repository}/{name}?Signature=abc")
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    def do_GET(self):
        _, fault, path = self.path.split("?")[0].split("/", 2)
        with LOCK:
            COUNTS[self.path] = count = COUNTS.get(self.path, 0) + 1
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(f"{self.command} {self.path} {self.headers.get('Range', '-')} {self.headers.get('Host')} {self.headers.items()}\n")
        prefix, address = fault, re.fullmatch(r"(api/models/)?([^/]+/[^/]+)/(revision|resolve)/([^/]+)(?:/(.+))?", path)
        if fault.endswith("!"):
            fault = fault[:-1]
        elif not path.startswith(("blobs/", "cdn/")):
            fault = "plain"
        if address:
            content = self.hub(prefix, address)
            if content is None:
                return None
        else:
            try:
                with open(os.path.join(FOLDER, path.removeprefix("cdn/")), "rb") as file:
                    content = file.read()
            except OSError:
                return self.head(404, 0)
        first, ranged = 0, False
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if match and int(match[1]) < len(content) and fault != "no-range":
            first, ranged = int(match[1]), True
        body = content[first:]
        status = 206 if ranged else 200
        where = {"Content_Range": f"bytes {first}-{len(content) - 1}/{len(content)}"} if ranged else {}
        if fault == "truncate" or (fault == "truncate-once" and count == 1) or fault == "no-range" and count == 1:
            self.head(status, len(body), **where)
            self.wfile.write(body[:len(body) // 2])
            return self.drop()
        if fault == "close-early":  # without a length
            self.head(status, None, Connection="close", **where)
            self.wfile.write(body[:len(body) // 2])
            return self.drop()
        if fault == "stall":
            self.head(status, len(body), **where)
            self.wfile.write(body[:100])
            self.wfile.flush()
            return time.sleep(30)
        if fault == "silent":
            return time.sleep(30)
        if fault == "loris":
            self.head(status, len(body), **where)
            for byte in body[:300]:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.1)
            return self.drop()
        if fault == "header-loris":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(300):
                self.wfile.write(b"X-Slow: 1\r\n")
                self.wfile.flush()
                time.sleep(0.1)
            return self.drop()
        if fault == "header-flood":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-Flood: " + b"a" * 8000 + b"\r\n")
        if fault in ("wrong-length", "short-length"):
            wrong = body + b"xx" if fault == "wrong-length" else body[:-1]
            self.head(status, len(wrong), **where)
            return self.wfile.write(wrong)
        if fault == "wrong-bytes" or (fault == "wrong-bytes-once" and count == 1):
            self.head(status, len(body), **where)
            return self.wfile.write(bytes([body[0] ^ 1]) + body[1:])
        if fault == "endless":
            self.head(status, None, Connection="close", **where)
            while True:
                self.wfile.write(b"x" * 65536)
        if fault == "gzip":
            packed = gzip.compress(b"\0" * (20 << 20), 1)
            self.head(200, None, Content_Encoding="gzip", Connection="close")
            self.wfile.write(packed)
            return self.drop()
        if fault == "redirect-loop":
            return self.redirect(self.path)
        if fault == "redirect-chain":
            return self.redirect(f"/redirect-chain/{path}?{count}")
        if fault == "redirect":
            return self.redirect(f"/plain/{path}")
        if fault == "redirect-host":  # the same server under another name, which must get no credentials
            return self.redirect(f"http://127.0.0.2:{self.server.server_port}/plain/{path}")
        if fault == "redirect-away":
            return self.redirect("http://192.0.2.1/" + path)
        if fault == "redirect-file":
            return self.redirect("file:///etc/passwd")
        if fault == "redirect-ftp":
            return self.redirect("ftp://127.0.0.1/x")
        if re.fullmatch(r"\d{3}(-once)?", fault) and (count == 1 or not fault.endswith("-once")):
            self.head(int(fault[:3]), 5)
            return self.wfile.write(b"sorry")
        if fault == "bad-range" and ranged:
            self.head(206, len(content), Content_Range=f"bytes 0-{len(content) - 1}/{len(content)}")
            return self.wfile.write(content)
        if fault == "other-total" and ranged:
            self.head(206, len(body), Content_Range=f"bytes {first}-{len(content) - 1}/{len(content) + 5}")
            return self.wfile.write(body)
        if fault == "refuse-range" and ranged:
            return self.head(416, 0)
        self.head(status, len(body), **where)
        return self.wfile.write(body)

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        pass


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
else:
    threading.Thread(target=Server(("127.0.0.2", server.server_port), Handler).serve_forever, daemon=True).start()
print(server.server_port, flush=True)
server.serve_forever()
