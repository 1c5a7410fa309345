"""The process of the S3 server of tests: moto, with atomic conditional puts, counted requests and faults.

It prints its port and ends with the process that started it, however that one ends. moto looks whether an object is
there and then writes it; S3 does both in one step, so puts with a condition are served one at a time here.

    GET  /_control/requests       the number of requests by method since the last time, as JSON
    GET  /_control/traffic        the requests of each object since the last time, and the bytes of their answers
    PUT  /_control/fail/<n>       answer the next n reads of objects below maps/ with an error
    PUT  /_control/lose/<n>       apply the next n puts of roots or pins and answer them with an error
    PUT  /_control/refuse/<n>     answer the next n puts of roots with an error and do not apply them
    PUT  /_control/deny/<n>       answer the next n puts with a condition as to a user who may only read
    PUT  /_control/replace/<n>    ignore the condition of the next n puts
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from threading import Lock, Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

_FAILED = Response("<Error><Code>InternalError</Code><Message>injected</Message></Error>", 500, mimetype="text/xml")

_DENIED = Response("<Error><Code>AccessDenied</Code><Message>injected</Message></Error>", 403, mimetype="text/xml")


class FaultyS3:
    """Serves requests by moto, one conditional put at a time."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._conditional, self._counted = Lock(), Lock()
        self._requests: Counter[str] = Counter()
        self._traffic: dict[str, list[int]] = {}
        self._faults: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path.startswith("/_control/"):
            return self._control(path.split("/")[2:])(environ, start_response)
        self._requests[method] += 1
        if method in ("GET", "HEAD") and "/maps/" in path and self._has("fail"):
            return _FAILED(environ, start_response)
        if "HTTP_IF_NONE_MATCH" not in environ or method != "PUT":
            return self._moto(environ, self._counting(method, path, start_response))
        with self._conditional:
            if self._has("replace"):
                del environ["HTTP_IF_NONE_MATCH"]
            if path.endswith(".root") and self._has("refuse"):
                return _FAILED(environ, start_response)
            if self._has("deny"):
                return _DENIED(environ, start_response)
            if (path.endswith(".root") or "/pins/" in path) and self._has("lose"):
                self._moto(environ, lambda *_: None)
                return _FAILED(environ, start_response)
            return self._moto(environ, start_response)

    def _counting(self, method: str, path: str, start_response: Any) -> Any:
        """Count a request of an object, and the bytes of its answer if it has any."""

        def start(status: str, headers: list[tuple[str, str]], *others: Any) -> Any:
            length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            with self._counted:
                counts = self._traffic.setdefault(path, [0, 0])
                counts[0] += 1
                counts[1] += length if method == "GET" else 0
            return start_response(status, headers, *others)

        return start

    def _has(self, fault: str) -> bool:
        if not self._faults[fault]:
            return False
        self._faults[fault] -= 1
        return True

    def _control(self, words: list[str]) -> Response:
        if words == ["requests"]:
            counted, self._requests = self._requests, Counter()
            return Response(json.dumps(counted))
        if words == ["traffic"]:
            with self._counted:
                traffic, self._traffic = self._traffic, {}
            return Response(json.dumps(traffic))
        fault, count = words
        self._faults[fault] = int(count)
        return Response("")


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, FaultyS3(), threaded=True, request_handler=MotoRequestHandler)
    print(server.port, flush=True)
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
