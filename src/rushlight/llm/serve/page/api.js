// Talks with the server: OpenAI's API. Nothing here touches the page.

export class ServerError extends Error {}

function headers(key) {
  const sent = { "Content-Type": "application/json" };
  if (key) sent.Authorization = `Bearer ${key}`;
  return sent;
}

async function refusal(response) {
  try {
    return new ServerError((await response.json()).error.message);
  } catch {
    return new ServerError(`the server answered ${response.status}`);
  }
}

// The model that is served: its id, context_length and has_chat.
export async function model(key) {
  const response = await fetch("/v1/models", { headers: headers(key) });
  if (!response.ok) throw await refusal(response);
  return (await response.json()).data[0];
}

// Splits text that arrives in parts into events of server-sent events.
export class EventReader {
  #rest = "";

  // The data of the events that are complete with this text.
  push(text) {
    const parts = (this.#rest + text).split("\n\n");
    this.#rest = parts.pop();
    return parts.filter((part) => part.startsWith("data: ")).map((part) => part.slice(6));
  }
}

// Calls `onEvent` with each event of a stream.
export async function stream(path, body, { key, signal, onEvent }) {
  const options = { method: "POST", headers: headers(key), body: JSON.stringify(body), signal };
  const response = await fetch(path, options);
  if (!response.ok) throw await refusal(response);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  for (;;) {
    const { done, value } = await reader.read();
    for (const data of events.push(done ? decoder.decode() : decoder.decode(value, { stream: true }))) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new ServerError(event.error.message);
      onEvent(event);
    }
    if (done) throw new ServerError("the server ended the reply early");
  }
}

// The messages of a conversation that the model gets: a reply that failed or was stopped before it
// said anything is left out, with its question.
export function answered(messages) {
  const kept = [];
  for (const message of messages) {
    if (message.role !== "assistant" || message.content) kept.push(message);
    else if (kept.at(-1)?.role === "user") kept.pop();
  }
  return kept;
}

// What a conversation and the settings are as a request; for a model without a chat template, the
// texts one after the other.
export function request(model, messages, settings) {
  const { system, key, ...sampling } = settings;
  const given = Object.entries(sampling).filter(([, value]) => value !== "");
  const body = {
    model: model.id,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    ...Object.fromEntries(given.map(([name, value]) => [name, Number(value)])),
  };
  const texts = answered(messages).map(({ role, content }) => ({ role, content }));
  if (system) texts.unshift({ role: "system", content: system });
  if (model.has_chat) return ["/v1/chat/completions", { ...body, messages: texts }];
  const prompt = texts.map(({ content }) => content).join("");
  return ["/v1/completions", { max_tokens: 256, ...body, prompt }];
}
