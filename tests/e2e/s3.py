"""A small server of the S3 protocol for tests: it verifies signatures by its own code, requests can be made to fail.

    with S3(buckets=["b"]) as s3:
        s3.url("b", "prefix")           # s3://b/prefix?endpoint=...
        s3.objects["b"]["prefix/key"]   # bytes
        s3.faults.append(fault)         # fault(request) -> None, or what becomes of it: "503", "500", "cut", "drop"

What it refuses: a signature that is not right, a body that is not what was signed, parts under 5 MiB but the last,
parts that were not sent as the finish says. It counts what came: s3.counts, s3.bytes_in.
"""
import hashlib
import hmac
import http.server
import re
import socket
import sys
import threading
import time
import urllib.parse
from collections import Counter
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET_KEY, REGION = "PHXTESTACCESSKEY", "test/secret+key=", "eu-test-1"
PART_MIN = 5 << 20


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(method, path, query, headers, signed, payload, scope, secret):
    """Of the request as it came: `path` is raw, `query` a list of decoded pairs."""
    quoted = sorted((urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~")) for k, v in query)
    canonical = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in quoted),
                           *[f"{name}:{' '.join(headers[name].split())}" for name in signed.split(";")], "",
                           signed, payload])
    date, region, service, _ = scope.split("/")
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = digest(digest(digest(digest(b"AWS4" + secret.encode(), date), region), service), "aws4_request")
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Request:
    """What a fault is asked about: what of the body came is in `body`."""

    def __init__(self, kind, bucket, key, query, body):
        self.kind, self.bucket, self.key, self.query, self.body = kind, bucket, key, query, body


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, code):
        self.answer(status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>it is a test</Message></Error>"
                    .encode())

    def verify(self, raw_path, query, body):
        words = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?"
                         r"Signature=([0-9a-f]{64})$", self.headers.get("authorization", ""))
        if not words or words[1] != ACCESS_KEY:
            raise Refused(403, "InvalidAccessKeyId")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(words[3].split(";")):
            raise Refused(403, "AccessDenied")
        if abs(time.time() - time.mktime(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")) + time.timezone) > 900:
            raise Refused(403, "RequestTimeTooSkewed")
        if words[2].split("/")[1:] != [REGION, "s3", "aws4_request"]:
            raise Refused(400, "AuthorizationHeaderMalformed")
        wanted = signature(self.command, raw_path, query, headers, words[3], headers["x-amz-content-sha256"], words[2],
                           SECRET_KEY)
        if not hmac.compare_digest(wanted, words[4]):
            raise Refused(403, "SignatureDoesNotMatch")
        if hashlib.sha256(body).hexdigest() != headers["x-amz-content-sha256"]:
            raise Refused(400, "XAmzContentSHA256Mismatch")

    def kind(self, key, query):
        if key == "":
            return "uploads" if "uploads" in query else "list"
        if self.command == "POST":
            return "begin" if "uploads" in query else "finish"
        if "uploadId" in query:
            return "part" if self.command == "PUT" else "abort"
        return {"GET": "get", "PUT": "put", "DELETE": "delete"}.get(self.command, "other")

    def serve(self):
        s3, split = self.server.s3, urllib.parse.urlsplit(self.path)
        pairs = urllib.parse.parse_qsl(split.query, keep_blank_values=True)
        bucket, _, key = urllib.parse.unquote(split.path)[1:].partition("/")
        query = dict(pairs)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Request(self.kind(key, query), bucket, key, query, body)
        with s3.lock:
            s3.counts[request.kind] += 1
            fault = next((f for f in (fault(request) for fault in s3.faults) if f), None)
            s3.counts[f"fault {fault}"] += 1 if fault else 0
        if fault == "cut":  # without an answer
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault and fault != "drop":
            self.fail(int(fault), {"503": "SlowDown", "500": "InternalError"}.get(fault, "AccessDenied"))
            return
        try:
            self.verify(split.path, pairs, body)
            with s3.lock:
                if bucket not in s3.objects:
                    raise Refused(404, "NoSuchBucket")
                status, answer, headers = getattr(s3, "on_" + request.kind)(request, self.headers)
        except Refused as refused:
            with s3.lock:
                s3.counts[f"refused {refused.code}"] += 1
            self.fail(refused.status, refused.code)
            return
        if fault == "drop":  # it is done, and nobody hears of it
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.answer(status, answer, **headers)

    do_GET = do_PUT = do_POST = do_DELETE = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that is killed is part of the test."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)


class S3:
    def __init__(self, buckets, page=1000):
        self.objects, self.pending, self.faults = {b: {} for b in buckets}, {}, []
        self.counts, self.bytes_in, self.page, self.numbers = Counter(), 0, page, 0
        self.lock = threading.Lock()

    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.s3 = self
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def url(self, bucket, prefix="", **options):
        options = {"endpoint": f"http://127.0.0.1:{self.server.server_port}", "region": REGION, **options}
        return f"s3://{bucket}/{prefix}?" + urllib.parse.urlencode(options)

    @staticmethod
    def environment():
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}

    # --- objects ---

    def on_put(self, request, _):
        self.objects[request.bucket][request.key] = request.body
        self.bytes_in += len(request.body)
        return 200, b"", {"ETag": '"%s"' % hashlib.md5(request.body).hexdigest()}

    def on_get(self, request, headers):
        data = self.objects[request.bucket].get(request.key)
        if data is None:
            raise Refused(404, "NoSuchKey")
        words = re.match(r"bytes=(\d+)-(\d+)$", headers.get("range", ""))
        if not words:
            return 200, data, {}
        first, last = int(words[1]), min(int(words[2]), len(data) - 1)
        if first >= len(data):
            raise Refused(416, "InvalidRange")
        return 206, data[first:last + 1], {"Content_Range": f"bytes {first}-{last}/{len(data)}"}

    def on_delete(self, request, _):
        self.objects[request.bucket].pop(request.key, None)
        return 204, b"", {}

    def on_list(self, request, _):
        after, start = request.query.get("continuation-token", ""), request.query.get("prefix", "")
        keys = sorted(k for k in self.objects[request.bucket] if k.startswith(start) and k > after)
        page, more = keys[:self.page], len(keys) > self.page
        body = "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
        body += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        body += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        for key in page:
            size = len(self.objects[request.bucket][key])
            body += f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size></Contents>"
        return 200, (body + "</ListBucketResult>").encode(), {}

    # --- uploads ---

    def on_begin(self, request, _):
        self.numbers += 1
        number = f"upload/{self.numbers}+x"
        self.pending[number] = (request.bucket, request.key, {})
        return 200, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>" \
            .encode(), {}

    def upload(self, request):
        upload = self.pending.get(request.query["uploadId"])
        if not upload or upload[:2] != (request.bucket, request.key):
            raise Refused(404, "NoSuchUpload")
        return upload[2]

    def on_part(self, request, _):
        tag = '"%s"' % hashlib.md5(request.body).hexdigest()
        self.upload(request)[int(request.query["partNumber"])] = (tag, request.body)
        self.bytes_in += len(request.body)
        return 200, b"", {"ETag": tag}

    def on_finish(self, request, _):
        parts = self.upload(request)
        named = re.findall(r"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag></Part>", request.body.decode())
        if [int(n) for n, _ in named] != sorted(parts) or any(parts[int(n)][0] != tag for n, tag in named):
            raise Refused(400, "InvalidPart")
        if any(len(parts[int(n)][1]) < PART_MIN for n, _ in named[:-1]):
            raise Refused(400, "EntityTooSmall")
        self.objects[request.bucket][request.key] = b"".join(parts[int(n)][1] for n, _ in named)
        del self.pending[request.query["uploadId"]]
        return 200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", {}

    def on_abort(self, request, _):
        self.upload(request)
        del self.pending[request.query["uploadId"]]
        return 204, b"", {}

    def on_uploads(self, request, _):
        body = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
        for number, (bucket, key, _) in sorted(self.pending.items()):
            if bucket == request.bucket and key.startswith(request.query.get("prefix", "")):
                body += f"<Upload><Key>{escape(key)}</Key><UploadId>{number}</UploadId>" \
                    "<Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>"
        return 200, (body + "</ListMultipartUploadsResult>").encode(), {}

    def on_other(self, *_):
        raise Refused(405, "MethodNotAllowed")
