# SPDX-License-Identifier: Apache-2.0
"""nginx with WebDAV, run by a test for itself: its own configuration, folder and port."""

import grp
import http.client
import http.server
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import threading
import urllib.parse

CONFIGURATION = """
user {user} {group};
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/served;
    client_max_body_size 2m;
    location /v/ {{ dav_methods PUT DELETE; create_full_put_path on; }}
    location /small/ {{ dav_methods PUT DELETE; client_max_body_size 1k; }}
  }}
}}
"""


def find_nginx():
    """Where it is, with WebDAV; None: not installed, or without."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        return None
    told = subprocess.run([program, "-V"], stderr=subprocess.PIPE, text=True, check=False).stderr
    return program if "http_dav_module" in told else None


class Nginx:
    """Serves folder/served until the test ends; self.url is where."""

    def __init__(self, test, folder):
        self.folder = pathlib.Path(folder)
        self.make_folder("v")
        # nginx takes over a socket that listens already, as when it replaces itself: so the port is
        # nobody else's, and clients may come before it is ready.
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            configuration = self.folder / "nginx.conf"
            configuration.write_text(CONFIGURATION.format(
                folder=self.folder, port=listener.getsockname()[1],
                user=pwd.getpwuid(os.getuid()).pw_name, group=grp.getgrgid(os.getgid()).gr_name))
            process = subprocess.Popen(
                [find_nginx(), "-c", configuration, "-p", self.folder,
                 "-e", self.folder / "error.log"],
                env={**os.environ, "NGINX": f"{listener.fileno()};"},
                pass_fds=(listener.fileno(),), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
        test.addCleanup(self._stop, process)

    @staticmethod
    def _stop(process):
        process.terminate()
        process.wait(timeout=30)

    def make_folder(self, path):
        """One that clients may fill, if the configuration lets them."""
        (self.folder / "served" / path).mkdir(parents=True)

    def objects(self, path="v"):
        return sorted(each.name for each in (self.folder / "served" / path).rglob("*"))


class Stalling(http.server.ThreadingHTTPServer):
    """In front of a server: passes on what it is asked, and keeps the first PUT of `target` until
    it is told to let go, long after whoever sent it has given up."""

    daemon_threads = True

    def __init__(self, test, behind, target):
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = urllib.parse.urlparse(behind).netloc
        self.target = target
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._kept = threading.Event()
        self._told = threading.Event()
        self._done = threading.Event()
        self._lock = threading.Lock()
        thread = threading.Thread(target=self.serve_forever)
        thread.start()
        test.addCleanup(thread.join)
        test.addCleanup(self.server_close)
        test.addCleanup(self.shutdown)
        test.addCleanup(self._told.set)

    def keep(self, method, target):
        """Waits, if this is the one."""
        with self._lock:
            if (method, target) != ("PUT", self.target) or self._kept.is_set():
                return False
            self._kept.set()
        self._told.wait()
        return True

    def passed(self):
        self._done.set()

    def let_go(self):
        """What was kept is carried out now."""
        assert self._kept.is_set()
        self._told.set()
        self._done.wait()


class _Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        was_kept = self.server.keep(self.command, self.path)
        connection = http.client.HTTPConnection(self.server.behind)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if was_kept:
            self.server.passed()
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        if answer.status != 204:
            length = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
            self.send_header("Content-Length", length or 0)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_DELETE = _pass_on  # pylint: disable=invalid-name

    def log_message(self, *_args):
        pass
