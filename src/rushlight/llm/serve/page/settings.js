// The settings: what their form shows is kept for the next visit, but for the API key.

const STORE = "rushlight-settings";

function load(storage, name) {
  try {
    return JSON.parse(storage.getItem(name) ?? "{}");
  } catch {
    return {};
  }
}

export class Settings {
  constructor(form, onKey) {
    this.form = form;
    const kept = { ...load(localStorage, STORE), key: load(sessionStorage, STORE).key ?? "" };
    for (const field of form.elements) {
      if (typeof kept[field.name] === "string") field.value = kept[field.name];
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => {
      this.#keep();
      if (event.target.name === "key") onKey();
    });
  }

  get values() {
    return Object.fromEntries(new FormData(this.form));
  }

  #keep() {
    const { key, ...others } = this.values;
    localStorage.setItem(STORE, JSON.stringify(others));
    sessionStorage.setItem(STORE, JSON.stringify({ key }));
  }
}
