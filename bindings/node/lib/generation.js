// Generated texts: options, promises of a whole text, and streams of pieces.
'use strict';

const check = require('./arguments.js');
const { invalid } = require('./errors.js');
const { Handle } = require('./handle.js');
const { attempt, native, settled } = require('./native.js');

const FINISHES = [null, 'stop', 'length', 'context', 'cancelled', 'failed'];
const U32 = 2 ** 32 - 1;
const count = (value, name) => check.whole(value, name, 0, U32);
const flag = (value, name) => Number(check.flag(value, name));

/** Token ids as the bytes of an Int32Array. */
function tokenBytes(tokens, name) {
  const ids =
    tokens instanceof Int32Array
      ? tokens
      : Int32Array.from(
          check.list(tokens, name, (token, at) => check.whole(token, at, 0, 2 ** 31 - 1)),
        );
  return new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength);
}

const OPTIONS = {
  n: (value, name) => check.whole(value, name, 1, U32),
  maxTokens: check.whole64,
  seed: check.whole64,
  temperature: check.real,
  topP: check.real,
  minP: check.real,
  typicalP: check.real,
  topK: count,
  repetitionPenalty: check.real,
  presencePenalty: check.real,
  frequencyPenalty: check.real,
  ignoresEnd: flag,
  echoes: flag,
  hasSpecial: flag,
  shifts: flag,
  keep: check.whole64,
  guesses: count,
  logprobs: (value, name) => (check.flag(value, name) ? 0 : -1),
  stop: (value, name) => check.list(value, name, check.string),
  stopTokens: tokenBytes,
  grammar: (value) => value,
  adapter: (value) => value,
  signal: check.signal,
};

/** The external of an option that is a handle. */
function externalOf(value, type, name) {
  if (value === undefined || value === null) return undefined;
  if (!Handle.is(value, type)) {
    throw invalid(`${name} is ${check.shown(value)}: give what the model's methods make`);
  }
  return Handle.external(value);
}

/** All options for the addon, and the signal: the caller's, and the model's own for the others. */
function optionsOf(model, options, types) {
  const { signal, grammar, adapter, ...own } = check.options(options, OPTIONS);
  const defaults = attempt(() => native.defaultOptions(model));
  return {
    signal,
    options: {
      ...defaults,
      ...own,
      grammar: externalOf(grammar, types.Grammar, 'grammar'),
      adapter: externalOf(adapter, types.Adapter, 'adapter'),
    },
  };
}

/**
 * Generates on a handle; each piece goes to `take`, which ends the texts by returning false, and
 * throws nothing.
 *
 * @returns {Promise<object>} statistics
 */
async function generate(external, prompt, { options, signal }, take) {
  signal?.throwIfAborted();
  const listener = (piece) => {
    const goesOn = take({ ...piece, finish: FINISHES[piece.finish] });
    if (!goesOn) stop();
  };
  const begun = attempt(() => native.generate(external, prompt, options, listener));
  const stop = () => native.stopGeneration(begun.number);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const { finish, ...counts } = await settled(() => begun.ended);
    signal?.throwIfAborted();
    return { finish: FINISHES[finish], ...counts };
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** Collects pieces as whole texts. */
class Texts {
  choices = [];

  /** Adds a piece; true. */
  add({ choice, text, tokens, logprobs, finish }) {
    while (this.choices.length <= choice) {
      this.choices.push({ text: '', tokens: [], logprobs: null, finish: null });
    }
    const whole = this.choices[choice];
    whole.text += text;
    for (const token of tokens) whole.tokens.push(token);
    if (logprobs !== undefined) (whole.logprobs ??= []).push(...logprobs);
    whole.finish = finish ?? whole.finish;
    return true;
  }
}

/** The pieces of a generation, for `for await`; leaving the loop ends the generation. */
class TextStream {
  #pieces = [];
  #waiting = []; // {resolve, reject} of calls of next() that there is no piece for yet
  #isLeft = false;
  #end = null; // {error} or {} when there is no more
  #statistics = null;
  #ended; // settles, never rejected

  /** `start(take)` begins the generation and is a promise of its statistics. */
  constructor(start) {
    const take = (piece) => {
      if (this.#isLeft) return false;
      const first = this.#waiting.shift();
      if (first === undefined) this.#pieces.push(piece);
      else first.resolve({ value: piece, done: false });
      return true;
    };
    this.#ended = start(take).then(
      (statistics) => {
        this.#statistics = statistics;
        this.#finish({});
      },
      (error) => this.#finish({ error }),
    );
  }

  #finish(end) {
    this.#end = end;
    for (const { resolve, reject } of this.#waiting.splice(0)) {
      if (end.error === undefined || this.#isLeft) resolve({ value: undefined, done: true });
      else reject(end.error);
      this.#isLeft = true; // an error is told once
    }
  }

  /** The counts of tokens and times; null until the texts have ended. */
  get statistics() {
    return this.#statistics;
  }

  async next() {
    if (this.#pieces.length > 0 && !this.#isLeft) {
      return { value: this.#pieces.shift(), done: false };
    }
    if (this.#end !== null || this.#isLeft) {
      const tells = this.#end?.error !== undefined && !this.#isLeft;
      this.#isLeft = true;
      if (tells) throw this.#end.error;
      return { value: undefined, done: true };
    }
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Ends the generation, and waits until it has ended. */
  async return(value) {
    this.#isLeft = true;
    this.#pieces = [];
    await this.#ended;
    return { value, done: true };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

module.exports = { TextStream, Texts, generate, optionsOf, tokenBytes };
