"""An S3 server in a process of its own, and a proxy in front of it that can fail in several ways."""

import http.client
import os
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "town"
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
INTERNAL = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
ANSWERS = {"500": (500, INTERNAL), "503": (503, SLOW_DOWN)}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def s3_server(folder):
    """The address of moto's server, a real HTTP server in its own process."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        limit = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert server.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < limit, "the server does not start"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def settings_of(endpoint, cache):
    """Environment variables of processes that use the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HUSHGRAPH_CACHE": str(cache),
    }


class Faults:
    """How a proxy fails: a kind, the share of requests, and after how many good ones it begins."""

    def __init__(self):
        self.kind, self.share, self.after, self.count, self.failed = None, 1.0, 0, 0, 0
        self.lock, self.draws = threading.Lock(), random.Random(0)

    def fail(self, kind, *, share=1.0, after=0):
        with self.lock:
            self.kind, self.share, self.after, self.failed = kind, share, self.count + after, 0

    def heal(self):
        self.fail(None)

    def next(self):
        """How this request fails; None: it is passed on."""
        with self.lock:
            self.count += 1
            if self.kind is None or self.count <= self.after or self.draws.random() >= self.share:
                return None
            self.failed += 1
            return self.kind


@contextmanager
def faulty_proxy(server):
    """The address of a proxy before the server, and its faults."""
    faults, target = Faults(), server.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind = faults.next()
            if kind == "drop":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif kind == "hang":
                time.sleep(3)
                self.close_connection = True
            elif kind is not None:
                self.answer(*ANSWERS[kind], {"Content-Type": "application/xml"})
            else:
                there = http.client.HTTPConnection(target)
                there.request(self.command, self.path, body, dict(self.headers))
                found = there.getresponse()
                kept = {
                    name: value for name, value in found.getheaders() if name.lower() not in ("connection", "transfer-encoding")
                }
                self.answer(found.status, found.read(), kept)
                there.close()

        def answer(self, status, content, headers):
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            size = headers.get("Content-Length", "0") if self.command == "HEAD" and status == 200 else str(len(content))
            self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815 - names that http.server looks for

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass

    with Server(("127.0.0.1", 0), Handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}", faults
        finally:
            proxy.shutdown()


@contextmanager
def environment(settings):
    """These environment variables for a while; file systems of other endpoints are forgotten."""
    import s3fs

    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        yield
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
