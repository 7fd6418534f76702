"""Static files, answered whole: under ASGI Django would otherwise collect a synchronous stream, with a warning."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise has no types
    """whitenoise with plain responses; the admin's files are small, so none needs streaming."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found: Any = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file as stream:
                body = stream.read()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
