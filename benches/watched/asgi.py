"""A page for uvicorn and hypercorn."""
import asyncio, os


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    await asyncio.sleep(float(os.environ["SECONDS"]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": b"ok\n"})
