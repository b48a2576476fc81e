"""A page for gunicorn."""
import os, time


def application(environ, start_response):
    time.sleep(float(os.environ["SECONDS"]))
    start_response("200 OK", [("Content-Length", "3"), ("Content-Type", "text/plain")])
    return [b"ok\n"]
