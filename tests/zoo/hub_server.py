"""A stand-in for the Hugging Face hub on loopback: the few endpoints that pushing and pulling a model use."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "hf_aVeryOwnSecretOfTheTest"
LARGEST = 64 << 20


class HubServer(ThreadingHTTPServer):
    """Repositories in memory, and the requests that came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.large: dict[str, bytes] = {}
        self.private: dict[str, Any] = {}
        self.sizes: dict[str, int] = {}  # that the hub claims, where they are not the real ones
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commit_of(self, repository: str) -> str:
        """The number of the commit, which follows from the files."""
        files = sorted(self.repositories[repository].items())
        return hashlib.sha1(b"".join(name.encode() + raw for name, raw in files)).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.handle_request()

    do_HEAD = do_POST = do_PUT = do_GET

    def handle_request(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        assert length <= LARGEST
        body = self.rfile.read(length) if length else b""
        path = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {path}")
        for method, pattern, answer in ROUTES:
            match = re.fullmatch(pattern, path)
            if match and self.command in method:
                return answer(self, body, **match.groupdict())
        return self.answer(404)

    def answer(self, status: int, content: Any = None, headers: dict[str, str] | None = None) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content or {}).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def refused(self, repository: str = "") -> bool:
        """Only the owner of the token may write, and nobody may write into somebody else's repositories."""
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, {"error": "Invalid username or password."})
        elif repository.startswith("else/"):
            self.answer(403, {"error": "You don't have the rights"})
        else:
            return False
        return True

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked.get('organization') or 'ada'}/{asked['name']}"
        if self.refused(name):
            return
        known = name in self.server.repositories
        self.server.repositories.setdefault(name, {})
        self.server.private.setdefault(name, asked.get("visibility", asked.get("private")))
        self.answer(409 if known else 200, {"url": f"{self.server.address}/{name}", "name": name})

    def check_header(self, body: bytes) -> None:
        text = json.loads(body)["content"]
        self.answer(200 if text.startswith("---\n") else 400, {"errors": [], "warnings": []})

    def choose_upload(self, body: bytes, repository: str) -> None:
        if not self.refused(repository):
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = {name: "lfs" if name.endswith(".safetensors") else "regular" for name in names}
            files = [{"path": name, "uploadMode": mode, "shouldIgnore": False} for name, mode in modes.items()]
            self.answer(200, {"files": files})

    def batch(self, body: bytes, repository: str) -> None:
        objects = [
            {**file, "actions": {"upload": {"href": f"{self.server.address}/upload/{file['oid']}"}}}
            for file in json.loads(body)["objects"]
        ]
        self.answer(200, {"transfer": "basic", "objects": objects}, {"Content-Type": "application/vnd.git-lfs+json"})

    def keep_large(self, body: bytes, digest: str) -> None:
        fits = hashlib.sha256(body).hexdigest() == digest
        self.server.large[digest] = body
        self.answer(200 if fits else 400)

    def commit(self, body: bytes, repository: str) -> None:
        if self.refused(repository):
            return
        files = self.server.repositories[repository]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
        number = self.server.commit_of(repository)
        address = f"{self.server.address}/{repository}/commit/{number}"
        self.answer(200, {"success": True, "commitOid": number, "commitUrl": address})

    def tell(self, body: bytes, repository: str, revision: str = "main") -> None:
        if self.missing(repository, revision):
            return
        files = self.server.repositories[repository]
        siblings = [{"rfilename": name, "size": self.server.sizes.get(name, len(raw))} for name, raw in files.items()]
        self.answer(200, {"id": repository, "sha": self.server.commit_of(repository), "siblings": siblings})

    def give(self, body: bytes, repository: str, revision: str, file: str) -> None:
        if not self.missing(repository, revision):
            raw = self.server.repositories[repository][file]
            number = self.server.commit_of(repository)
            self.answer(200, raw, {"ETag": f'"{hashlib.sha256(raw).hexdigest()}"', "X-Repo-Commit": number})

    def missing(self, repository: str, revision: str) -> bool:
        if repository not in self.server.repositories:
            self.answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", self.server.commit_of(repository)):
            self.answer(404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
        else:
            return False
        return True


NAME = r"(?P<repository>[\w.-]+/[\w.-]+?)"
ROUTES = [
    ("POST", "/api/repos/create", Handler.create),
    ("POST", "/api/validate-yaml", Handler.check_header),
    ("POST", f"/api/models/{NAME}/preupload/main", Handler.choose_upload),
    ("POST", rf"/{NAME}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", r"/upload/(?P<digest>\w+)", Handler.keep_large),
    ("POST", f"/api/models/{NAME}/commit/main", Handler.commit),
    ("GET", rf"/api/models/{NAME}(/revision/(?P<revision>[\w.-]+))?", lambda self, body, repository, revision: (
        self.tell(body, repository, revision or "main"))),
    (("GET", "HEAD"), rf"/{NAME}/resolve/(?P<revision>[\w.-]+)/(?P<file>[\w.-]+)", Handler.give),
]  # fmt: skip


@contextmanager
def hub_server() -> Iterator[HubServer]:
    server = HubServer()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
