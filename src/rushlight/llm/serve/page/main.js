// The chat page. The conversation is `messages`; each reply is a request with all of it, and the
// server computes what it has not seen.

import { model as fetchModel, request, stream } from "/page/api.js";
import { Settings } from "/page/settings.js";
import { MessageView } from "/page/view.js";

const $ = (id) => document.getElementById(id);
const [log, ask, text, send, stop, figures] =
  ["log", "ask", "text", "send", "stop", "figures"].map($);

let model = null;
let views = [];
let running = null;  // AbortController of the reply that is written

const settings = new Settings($("settings"), () => connect());

async function connect() {
  try {
    model = await fetchModel(settings.values.key);
    $("model").textContent = document.title = model.id;
    figures.textContent = "";
  } catch (error) {
    model = null;
    figures.textContent = error.message;
  }
}

function add(message) {
  const actions = { Edit: edit };
  if (message.role === "assistant") actions["Try again"] = retry;
  actions.Copy = (view) => navigator.clipboard?.writeText(view.message.content);
  const view = new MessageView(message, actions);
  views.push(view);
  log.append(view.root);
  view.root.scrollIntoView({ block: "end" });
  return view;
}

// Takes the conversation back to before a message.
function rewind(view) {
  running?.abort();
  const at = views.indexOf(view);
  for (const gone of views.splice(at)) gone.root.remove();
}

function edit(view) {
  view.edit((content) => {
    const { role } = view.message;
    rewind(view);
    add({ role, content });
    if (role === "user") reply();
  });
}

function retry(view) {
  rewind(view);
  reply();
}

function showFigures(usage, began, first) {
  const seconds = (performance.now() - first) / 1000;
  const parts = [`${usage.completion_tokens} tokens`];
  if (usage.completion_tokens > 1 && seconds > 0) {
    parts.push(`${((usage.completion_tokens - 1) / seconds).toFixed(1)} tokens/s`);
  }
  parts.push(`first after ${Math.round(first - began)} ms`);
  const reused = usage.prompt_tokens_details?.cached_tokens;
  if (reused) parts.push(`${reused} of ${usage.prompt_tokens} prompt tokens reused`);
  figures.textContent = parts.join(" · ");
}

// Takes an event of the stream into a message; returns whether it had text.
function take(message, choice) {
  const delta = choice.delta ?? { content: choice.text };
  message.content += delta.content ?? "";
  message.reasoning = (message.reasoning ?? "") + (delta.reasoning_content ?? "");
  if (choice.finish_reason === "length") message.note = "It ended at the limit of tokens.";
  return Boolean(delta.content || delta.reasoning_content);
}

async function reply() {
  running?.abort();
  const control = (running = new AbortController());
  const messages = views.map((view) => view.message);
  const message = { role: "assistant", content: "" };
  const view = add(message);
  send.hidden = true;
  stop.hidden = false;
  const began = performance.now();
  let first = 0;
  const onEvent = (event) => {
    const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    for (const choice of event.choices) {
      if (take(message, choice)) first ||= performance.now();
    }
    view.update();
    if (event.usage && first) showFigures(event.usage, began, first);
    if (follows) log.scrollTop = log.scrollHeight;
  };
  try {
    if (!model) await connect();
    if (!model) throw new Error(figures.textContent);
    const values = settings.values;
    const [path, body] = request(model, messages, values);
    await stream(path, body, { key: values.key, signal: control.signal, onEvent });
  } catch (error) {
    message.wrong = error.name !== "AbortError";
    if (message.wrong) model = null;  // it may be another one now
    message.note = message.wrong ? error.message : "Stopped.";
  }
  view.update();
  if (running === control) {
    running = null;
    send.hidden = false;
    stop.hidden = true;
    text.focus();
  }
}

ask.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!text.value.trim() || running) return;
  add({ role: "user", content: text.value });
  text.value = "";
  reply();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask.requestSubmit();
  }
});
stop.addEventListener("click", () => running?.abort());
$("new").addEventListener("click", () => {
  if (views.length) rewind(views[0]);
  figures.textContent = "";
  text.focus();
});
$("open-settings").addEventListener("click", (event) => {
  const form = $("settings");
  form.hidden = !form.hidden;
  event.target.setAttribute("aria-expanded", String(!form.hidden));
});
connect();
