// Draws a conversation. What people and models wrote becomes text nodes, never HTML.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Text with fenced code as <pre>; what comes after an open fence is code as well.
export function withCode(text) {
  return text.split(/^```.*$\n?/m).flatMap((part, i) => {
    if (!part) return [];
    return [i % 2 ? element("pre", {}, element("code", {}, part)) : part];
  });
}

// Shows a message, and changes it as it grows.
export class MessageView {
  constructor(message, actions) {
    this.message = message;
    this.content = element("div", { class: "content said" });
    this.reasoning = element("div", { class: "content" });
    this.details = element("details", {}, element("summary", {}, "Reasoning"), this.reasoning);
    this.note = element("p", { class: "note" });
    const buttons = Object.entries(actions).map(([name, act]) =>
      element("button", { type: "button", onclick: () => act(this) }, name));
    this.actions = element("div", { class: "actions" }, ...buttons);
    this.root = element("article", { class: message.role }, this.details, this.content, this.note, this.actions);
    this.update();
  }

  update() {
    const { content, reasoning, note, wrong } = this.message;
    this.content.replaceChildren(...withCode(content));
    this.reasoning.textContent = reasoning ?? "";
    this.details.hidden = !reasoning;
    this.note.textContent = note ?? "";
    this.note.classList.toggle("wrong", Boolean(wrong));
    this.note.hidden = !note;
  }

  // Shows a field in place of the text; `done` is called with what was written.
  edit(done) {
    const field = element("textarea", { rows: "4", "aria-label": "Edited message" });
    field.value = this.message.content;
    const leave = () => {
      form.replaceWith(this.content);
      this.actions.hidden = false;
    };
    const form = element("form", {
      class: "edit",
      onsubmit: (event) => {
        event.preventDefault();
        leave();
        done(field.value);
      },
    },
    field,
    element("div", { class: "actions" },
      element("button", { type: "submit" }, this.message.role === "user" ? "Send again" : "Keep"),
      element("button", { type: "button", onclick: leave }, "Leave as it was")));
    this.actions.hidden = true;
    this.content.replaceWith(form);
    field.focus();
  }
}
