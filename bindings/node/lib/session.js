// Sessions, grammars and adapters of language models.
'use strict';

const check = require('./arguments.js');
const { TextStream, Texts, generate, optionsOf, tokenBytes } = require('./generation.js');
const { Handle, OWN, command } = require('./handle.js');

/** What a text may be: made by LanguageModel.grammar(). */
class Grammar extends Handle {}

/** An adapter (LoRA): made by LanguageModel.adapter(). */
class Adapter extends Handle {}

const TYPES = { Grammar, Adapter };

/** A text that is kept, with its cache. Its calls are done one after the other. */
class Session extends Handle {
  #model;

  constructor(own, handle, model) {
    super(own, handle);
    this.#model = model;
  }

  /** The language model. */
  get model() {
    return this.#model;
  }

  #start(prompt, options, take) {
    const model = Handle.external(this.#model);
    const tokens = tokenBytes(this.#model.tokensOf(prompt), 'prompt');
    const all = optionsOf(model, options, TYPES);
    return Handle.inOrder(this, (external) => generate(external, tokens, all, take), all.signal);
  }

  /** Adds the prompt to the text, and then what is generated. */
  async generate(prompt, options) {
    const texts = new Texts();
    const statistics = await this.#start(prompt, options, (piece) => texts.add(piece));
    return { ...texts.choices[0], choices: texts.choices, statistics };
  }

  /** The same, piece by piece. */
  stream(prompt, options) {
    return new TextStream((take) => this.#start(prompt, options, take));
  }

  /** A session with the same text, which shares its cache. */
  async fork() {
    return new Session(OWN, await command(this, 'fork'), this.#model);
  }

  /** Drops the last `count` tokens. */
  async rewind(count) {
    await command(this, 'rewind', { first: check.whole64(count, 'count') });
  }

  /** The tokens of the text. */
  async tokens() {
    return new Int32Array(await command(this, 'tokens'));
  }

  /** Replaces the text; the cache of what both begin with is kept. */
  async setTokens(tokens) {
    await command(this, 'setTokens', { bytes: tokenBytes(tokens, 'tokens') });
  }

  /** Writes the text and its cache to a file, for LanguageModel.restore(). */
  async save(file) {
    await command(this, 'save', { text: check.path(file) });
  }
}

module.exports = { Adapter, Grammar, Session, TYPES };
