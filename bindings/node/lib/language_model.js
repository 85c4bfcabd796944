// Language models: tokens, texts, vectors, and what belongs to a model.
'use strict';

const check = require('./arguments.js');
const { invalid } = require('./errors.js');
const { TextStream, Texts, generate, optionsOf, tokenBytes } = require('./generation.js');
const { Handle, OWN } = require('./handle.js');
const { sourceOf } = require('./module.js');
const { attempt, native, settled } = require('./native.js');
const { Adapter, Grammar, Session, TYPES } = require('./session.js');
const { dtypeName } = require('./tensor.js');
const { traceFields } = require('./trace.js');

const CACHES = { automatic: 0, float32: 1, float16: 2, int8: 3 };
const ADD_SPECIAL = 1;
const PARSE_SPECIAL = 2;
const SKIP_SPECIAL = 4;
const IS_CHAT = 256;
const OPTIONS = {
  threads: (value, name) => check.whole(value, name, 0, 4096),
  memoryLimit: check.whole64,
  dataPath: check.path,
  backends: (value, name) => check.list(value, name, check.path),
  kernels: (value, name) => check.list(value, name, check.path),
  readsFile: (value, name) => Number(check.flag(value, name)),
  guardsFile: (value, name) => Number(check.flag(value, name)),
  cache: (value, name) => {
    if (typeof value === 'string' && Object.hasOwn(CACHES, value)) return CACHES[value];
    throw invalid(`${name} is ${check.shown(value)}: there are ${Object.keys(CACHES).join(', ')}`);
  },
  maxTexts: (value, name) => check.whole(value, name, 0, 2 ** 20),
  cacheLimit: check.whole64,
  prefillRows: check.whole64,
  chatTemplate: check.plain,
};

/** A language model. Any number of calls may be under way; their texts are computed together. */
class LanguageModel extends Handle {
  /** Opens a program with a language model: a path, a file URL, or its bytes. */
  static async open(source, options) {
    const fields = { ...check.options(options, OPTIONS), ...sourceOf(source) };
    return new LanguageModel(OWN, await settled(() => native.openLanguageModel(fields)));
  }

  /** What the model is, and how much cache is taken now. */
  get info() {
    const known = attempt(() => native.describeLanguageModel(Handle.external(this)));
    return {
      cacheDtype: known.cacheDtype < 0 ? null : dtypeName(known.cacheDtype),
      vocabulary: Number(known.vocabulary),
      context: Number(known.context),
      hidden: Number(known.hidden),
      pageBytes: Number(known.pageBytes),
      cacheBytes: Number(known.cacheBytes),
      cacheLimit: Number(known.cacheLimit),
      hasTokenizer: known.hasTokenizer !== 0,
      hasChatTemplate: known.hasChatTemplate !== 0,
    };
  }

  /** The options that its makers recommend. */
  get defaults() {
    const { logprobs, ...known } = attempt(() => native.defaultOptions(Handle.external(this)));
    const options = { ...known, logprobs: logprobs >= 0 };
    for (const name of ['ignoresEnd', 'echoes', 'hasSpecial', 'shifts']) {
      options[name] = options[name] !== 0;
    }
    for (const name of ['maxTokens', 'keep']) options[name] = Number(options[name]);
    return options;
  }

  /** The tokens of a text, with those that surround each text. */
  encode(text, options) {
    const { addSpecial = true, parseSpecial = false } = check.options(options, {
      addSpecial: check.flag,
      parseSpecial: check.flag,
    });
    const flags = (addSpecial ? ADD_SPECIAL : 0) | (parseSpecial ? PARSE_SPECIAL : 0);
    const external = Handle.external(this);
    return attempt(() => native.encode(external, check.string(text, 'text'), flags));
  }

  /** The text of tokens, without special ones. */
  decode(tokens, options) {
    const { skipSpecial = true } = check.options(options, { skipSpecial: check.flag });
    const external = Handle.external(this);
    const ids = tokenBytes(tokens, 'tokens');
    return attempt(() => native.decode(external, ids, skipSpecial ? SKIP_SPECIAL : 0));
  }

  /** The tokens of a conversation by the model's chat template. */
  encodeChat(messages, { addGenerationPrompt = true, ...variables } = {}) {
    const external = Handle.external(this);
    if (!Array.isArray(messages)) {
      throw invalid(`messages is ${check.shown(messages)}: give an array of {role, content}`);
    }
    const json = JSON.stringify({
      messages,
      add_generation_prompt: addGenerationPrompt,
      ...variables,
    });
    return attempt(() => native.encode(external, json, IS_CHAT));
  }

  /** The tokens of a prompt: a text, tokens, or the messages of a conversation. */
  tokensOf(prompt) {
    if (typeof prompt === 'string') return this.encode(prompt);
    const isChat = Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] === 'object';
    return isChat ? this.encodeChat(prompt) : prompt;
  }

  #start(prompt, options, take) {
    const model = Handle.external(this);
    const tokens = tokenBytes(this.tokensOf(prompt), 'prompt');
    const all = optionsOf(model, options, TYPES);
    return Handle.beside(this, (external) => generate(external, tokens, all, take));
  }

  /** Generates texts after a prompt. */
  async generate(prompt, options) {
    const texts = new Texts();
    const statistics = await this.#start(prompt, options, (piece) => texts.add(piece));
    return { ...texts.choices[0], choices: texts.choices, statistics };
  }

  /** The same, piece by piece. */
  stream(prompt, options) {
    return new TextStream((take) => this.#start(prompt, options, take));
  }

  /** The vector of each text, of the length 1 unless `normalizes` is false. */
  async embed(texts, options) {
    const { normalizes = true, truncates = false } = check.options(options, {
      normalizes: check.flag,
      truncates: check.flag,
    });
    check.list(texts, 'texts', check.string);
    const buffer = await Handle.beside(this, (external) =>
      settled(() => native.embed(external, texts, normalizes, truncates)),
    );
    const { hidden } = this.info;
    return texts.map((_, i) => new Float32Array(buffer, i * hidden * 4, hidden));
  }

  // Commands of a model are done beside each other.
  #command(name, fields) {
    return Handle.beside(this, (external) => settled(() => native.command(external, name, fields)));
  }

  /** Records the model's steps from now on, and forgets what was recorded. */
  async startTrace(options) {
    await this.#command('startTrace', traceFields(options));
  }

  /** Records no more, and keeps what was recorded until the next start. */
  async stopTrace() {
    await this.#command('stopTrace', {});
  }

  /** Writes the trace to a file (ETDump), and values to one with ".values" at its end. */
  async saveTrace(file) {
    await this.#command('saveTrace', { text: check.path(file) });
  }

  /** A session without tokens. */
  async session() {
    return new Session(OWN, await this.#command('session', {}), this);
  }

  /** A session from a file of Session.save(); `adapter`: what it was made with. */
  async restore(file, { adapter } = {}) {
    const fields = { text: check.path(file) };
    if (adapter !== undefined && adapter !== null) {
      if (!Handle.is(adapter, Adapter)) throw invalid(`adapter is ${check.shown(adapter)}`);
      fields.adapter = Handle.external(adapter);
    }
    return new Session(OWN, await this.#command('restore', fields), this);
  }

  /** A grammar: {regex: string}, or {jsonSchema: object or string}. */
  async grammar({ regex, jsonSchema } = {}) {
    if ((regex === undefined) === (jsonSchema === undefined)) {
      throw invalid('grammar: give either regex or jsonSchema');
    }
    if (regex !== undefined) {
      const text = check.string(regex, 'regex');
      return new Grammar(OWN, await this.#command('grammarFromRegex', { text }));
    }
    const text = typeof jsonSchema === 'string' ? jsonSchema : JSON.stringify(jsonSchema);
    return new Grammar(OWN, await this.#command('grammarFromJsonSchema', { text }));
  }

  /** An adapter (LoRA) of the model, from a file. */
  async adapter(file) {
    return new Adapter(OWN, await this.#command('adapter', { text: check.path(file) }));
  }
}

module.exports = { LanguageModel };
