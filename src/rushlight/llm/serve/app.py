"""The routes of the server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rushlight.llm.runner import Runner
from rushlight.llm.serve.body import LimitBodies, read_json
from rushlight.llm.serve.chat import ChatCall
from rushlight.llm.serve.completions import CompletionCall
from rushlight.llm.serve.embeddings import EmbeddingCall
from rushlight.llm.serve.errors import ApiError, Json, as_api_error, error_response
from rushlight.llm.serve.fields import Fields
from rushlight.llm.serve.generation import Call, Computation, Generation
from rushlight.llm.serve.guard import Guard
from rushlight.llm.serve.jobs import Jobs
from rushlight.llm.serve.metrics import CONTENT_TYPE, CountRequests, Metrics
from rushlight.llm.serve.models import find_model
from rushlight.llm.serve.settings import Settings

_PAGE = Path(__file__).parent / "page"


class Server:
    """What the routes need.

    Args:
        runner: the model.
        settings: how it is served.
    """

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self._runner = runner
        self._settings = settings
        self._metrics = Metrics()
        self._jobs = Jobs(settings, self._metrics.add)
        self._metrics.watch(runner, self._jobs)

    def end(self) -> None:
        """End the texts that are generated."""
        self._jobs.cancel()

    def app(self) -> Starlette:
        """The application, for uvicorn."""
        routes: list[Route | Mount] = [
            Route("/", self._page),
            Mount("/page", StaticFiles(directory=_PAGE)),
            Route("/health", self._health),
            Route("/metrics", self._figures),
            Route("/v1/models", self._models),
            Route("/v1/models/{name:path}", self._model),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/completions", self._complete, methods=["POST"]),
            Route("/v1/embeddings", self._embed, methods=["POST"]),
        ]
        paths = frozenset(route.path for route in routes if isinstance(route, Route))
        middleware = [
            Middleware(CountRequests, metrics=self._metrics, paths=paths),
            Middleware(Guard, settings=self._settings),
            Middleware(LimitBodies, settings=self._settings),
        ]
        if self._settings.origins:
            cross = Middleware(
                CORSMiddleware,
                allow_origins=sorted(self._settings.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
            )
            middleware.insert(1, cross)
        handlers: dict[Any, Any] = {
            ApiError: _answer_error,
            HTTPException: _answer_http_error,
            Exception: _answer_error,
        }
        return Starlette(
            routes=routes,
            middleware=middleware,
            exception_handlers=handlers,
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self._jobs.close()

    async def _page(self, request: Request) -> Response:
        return FileResponse(_PAGE / "index.html", media_type="text/html; charset=utf-8")

    async def _health(self, request: Request) -> Response:
        counts = {"running": self._jobs.running, "waiting": self._jobs.waiting}
        return Json({"status": "ok", **counts})

    # Not async, so that a thread runs it: the bytes of the cache are known between two steps.
    def _figures(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    def _described(self, name: str) -> dict[str, Any]:
        base = self._settings.name
        return {
            "id": name,
            "object": "model",
            "created": self._settings.created,
            "owned_by": "rushlight",
            "parent": None if name == base else base,
            "context_length": self._runner.context,
            "has_chat": self._runner.has_chat,
        }

    async def _models(self, request: Request) -> Response:
        names = [self._settings.name, *self._settings.adapters]
        return Json({"object": "list", "data": [self._described(name) for name in names]})

    async def _model(self, request: Request) -> Response:
        asked = find_model(request.path_params["name"], self._settings)
        return Json(self._described(asked.name))

    async def _fields(self, request: Request) -> Fields:
        self._jobs.check()  # before the body is read
        return Fields(await read_json(request, self._settings))

    def _generation(self, call: Call) -> Generation:
        return Generation(call, self._jobs, self._settings.seconds)

    async def _chat(self, request: Request) -> Generation:
        fields = await self._fields(request)
        return self._generation(ChatCall(self._runner, fields, self._settings))

    async def _complete(self, request: Request) -> Generation:
        fields = await self._fields(request)
        return self._generation(CompletionCall(self._runner, fields, self._settings))

    async def _embed(self, request: Request) -> Computation:
        fields = await self._fields(request)
        call = EmbeddingCall(self._runner, fields, self._settings)
        return Computation(call.compute, call.cancel, self._jobs, self._settings.seconds)


async def _answer_error(request: Request, error: Exception) -> Response:
    return error_response(as_api_error(error))


async def _answer_http_error(request: Request, error: HTTPException) -> Response:
    told = ApiError(
        error.status_code,
        f"{request.method} {request.url.path[:200]}: {error.detail}; docs/llm/serve.md lists what "
        f"there is",
        headers=error.headers,
    )
    return error_response(told)
