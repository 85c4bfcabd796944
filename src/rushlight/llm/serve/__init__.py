"""Serves a language model over HTTP: OpenAI's API, and a chat page; `rushlight llm serve` runs it.

    app.py          the routes
    guard.py        who is answered: Host, Origin, the key
    body.py         a request's bytes to a JSON object, within limits
    fields.py       its fields: each is read once, and what is left over is refused
    sampling.py     the fields that become options of `Runner.generate`
    chat.py, messages.py, completions.py, embeddings.py    what is asked, and how it is answered
    generation.py   an answer while it is generated: whole or as events, and until the client leaves
    jobs.py         requests that are computed by threads, and those that wait
    metrics.py      what Prometheus reads
    server.py       the socket, and uvicorn
    page/           the chat page

It needs starlette, uvicorn and prometheus_client: pip install 'rushlight[serve]'.
"""
