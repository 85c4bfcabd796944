// Language models: texts, tokens and vectors are Python's; streams, signals, sessions.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync, rmSync } = require('node:fs');
const { after, before, test } = require('node:test');
const { Code, Grammar, LanguageModel, Session } = require('rushlight');
const { assertFails, expected, golden, made } = require('./support.js');

const { llm: wanted } = expected;
const PROMPT = wanted.prompt;
const GREEDY = { temperature: 0, maxTokens: 8, ignoresEnd: true };
const ENDLESS = { maxTokens: 2 ** 40, shifts: true, ignoresEnd: true };
let model;

before(async () => {
  model = await LanguageModel.open(golden('llm/v1.pte'), { threads: 1 });
});
after(() => model.close());

test('tokens are those of Python', async () => {
  for (const { text, tokens, decoded } of wanted.tokenized) {
    assert.deepEqual([...model.encode(text)], tokens);
    assert.equal(model.decode(tokens), decoded);
    assert.equal(model.decode(Int32Array.from(tokens)), decoded);
  }
  const end = model.encode('<|end|>', { addSpecial: false, parseSpecial: true });
  assert.ok(model.encode('<|end|>', { addSpecial: false }).length > 1 && end.length === 1);
  assert.deepEqual([model.decode(end), model.decode(end, { skipSpecial: false })], ['', '<|end|>']);
  assert.deepEqual([...model.encodeChat(wanted.messages)], wanted.chat);
  assert.equal(model.encode('\ud800').length, model.encode('\ufffd').length);
  const WRONG = Code.INVALID_ARGUMENT;
  await assertFails(WRONG, /text is 3/, () => model.encode(3));
  await assertFails(WRONG, /tokens\[1\] is -1/, () => model.decode([1, -1]));
  await assertFails(WRONG, /messages is "hi"/, () => model.encodeChat('hi'));
});

test('texts are those of Python', async () => {
  for (const { options, tokens, text } of wanted.generated) {
    const got = await model.generate(PROMPT, { ...options, ignoresEnd: true });
    assert.deepEqual([got.tokens, got.text], [tokens, text]);
    assert.equal(got.statistics.outputTokens, tokens.length);
    const session = await model.session();
    const again = await session.generate(model.encode(PROMPT), { ...options, ignoresEnd: true });
    assert.deepEqual(again.tokens, tokens);
    assert.deepEqual([...(await session.tokens())], [...model.encode(PROMPT), ...tokens]);
    await session.close();
  }
});

test('from memory, with every option', async () => {
  const other = await LanguageModel.open(readFileSync(golden('llm/v1.pte')), {
    threads: 2,
    cache: 'float32',
    maxTexts: 2,
    prefillRows: 4,
    chatTemplate: '{{ messages[0].content }}',
  });
  assert.equal(other.info.cacheDtype, 'float32');
  assert.deepEqual([...other.encodeChat([{ role: 'user', content: PROMPT }])].slice(-3), [
    ...model.encode(PROMPT).slice(-3),
  ]);
  const texts = await other.generate(PROMPT, {
    ...GREEDY,
    n: 3,
    logprobs: true,
    seed: 2n ** 64n - 1n,
  });
  assert.equal(texts.choices.length, 3);
  for (const choice of texts.choices) {
    assert.equal(choice.tokens.length, 8);
    assert.equal(choice.logprobs.length, 8);
    assert.ok(choice.logprobs.every((p) => p <= 0));
    assert.equal(choice.finish, 'length');
  }
  await other.close();
});

test('streams give pieces, and end when they are left', async () => {
  const whole = await model.generate(PROMPT, GREEDY);
  const stream = model.stream(PROMPT, GREEDY);
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  assert.equal(pieces.map((piece) => piece.text).join(''), whole.text);
  assert.deepEqual(
    pieces.flatMap((piece) => [...piece.tokens]),
    whole.tokens,
  );
  assert.equal(pieces.at(-1).finish, 'length');
  assert.equal(stream.statistics.outputTokens, 8);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
  const endless = model.stream(PROMPT, ENDLESS);
  let count = 0;
  for await (const piece of endless) if (piece && ++count === 5) break;
  assert.equal(endless.statistics.finish, 'cancelled');
  // Calls of next() before there are pieces, and no reader at all.
  const eager = model.stream(PROMPT, GREEDY);
  const results = await Promise.all(Array.from({ length: 12 }, () => eager.next()));
  assert.equal(results.filter((result) => !result.done).length, pieces.length);
  const unread = model.stream(PROMPT, { ...GREEDY, maxTokens: 2 });
  await unread.return();
  await assert.rejects(async () => {
    for await (const piece of model.stream(PROMPT, ENDLESS)) if (piece) throw new Error('mine');
  }, /mine/);
});

test('signals end texts', async () => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(model.generate(PROMPT, { ...ENDLESS, signal: controller.signal }), {
    name: 'AbortError',
  });
  const session = await model.session();
  const one = new AbortController();
  const running = session.generate(PROMPT, { ...ENDLESS, signal: one.signal });
  const queued = new AbortController();
  const waits = session.generate(PROMPT, { signal: queued.signal });
  queued.abort(new Error('not now'));
  await assert.rejects(waits, /not now/);
  one.abort();
  await assert.rejects(running, { name: 'AbortError' });
  await assert.rejects(
    async () => {
      const signal = AbortSignal.timeout(20);
      for await (const piece of session.stream('a', { ...ENDLESS, signal })) assert.ok(piece);
    },
    { name: 'TimeoutError' },
  );
  await assert.rejects(model.generate(PROMPT, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  await session.setTokens([]);
  assert.deepEqual(
    (await session.generate(PROMPT, GREEDY)).tokens,
    (await model.generate(PROMPT, GREEDY)).tokens,
  );
  await session.close();
});

test('many texts at once are what they are alone', async () => {
  const prompts = Array.from({ length: 12 }, (_, i) => PROMPT.slice(0, 3 + i));
  const options = { ...GREEDY, temperature: 0.8, seed: 3 };
  const alone = [];
  for (const prompt of prompts) alone.push((await model.generate(prompt, options)).tokens);
  const sessions = await Promise.all(prompts.map(() => model.session()));
  const together = await Promise.all(
    prompts.map((prompt, i) => (i % 2 ? model : sessions[i]).generate(prompt, options)),
  );
  assert.deepEqual(
    together.map((got) => got.tokens),
    alone,
  );
  await Promise.all(sessions.map((session) => session.close()));
});

test('sessions are saved, restored, forked and rewound', async () => {
  const file = made('session.bin');
  const session = await model.session();
  await session.generate(PROMPT, GREEDY);
  await session.save(file);
  const [fork, again] = await Promise.all([session.fork(), model.restore(file)]);
  assert.ok(fork instanceof Session && fork.model === model);
  assert.deepEqual(await again.tokens(), await session.tokens());
  await fork.rewind(8);
  assert.deepEqual([...(await fork.tokens())], [...model.encode(PROMPT)]);
  assert.deepEqual(
    (await fork.generate([], GREEDY)).tokens,
    (await session.tokens()).slice(-8).reduce((all, t) => [...all, t], []),
  );
  await assertFails(Code.INVALID_ARGUMENT, /./, () => session.rewind(10_000));
  await assertFails(Code.INVALID_ARGUMENT, /count is -1/, () => session.rewind(-1));
  await assertFails(Code.ACCESS_FAILED, /./, () => session.save('/no/such/folder/file'));
  await assertFails(Code.INVALID_EXTERNAL_DATA, /./, () => model.restore(golden('add.pte')));
  rmSync(file);
  await Promise.all([session, fork, again].map((one) => one.close()));
  await assertFails(Code.INVALID_STATE, /the Session is closed/, () => session.tokens());
});

test('grammars, stop texts and vectors', async () => {
  const grammar = await model.grammar({ jsonSchema: { enum: ['yes', 'no'] } });
  const answer = await model.generate(PROMPT, { temperature: 0, maxTokens: 20, grammar });
  assert.ok(['yes', 'no'].includes(JSON.parse(answer.text)));
  const regex = await model.grammar({ regex: '[0-9]{3}' });
  assert.match((await model.generate(PROMPT, { maxTokens: 9, grammar: regex })).text, /^[0-9]{3}$/);
  const { text } = await model.generate(PROMPT, GREEDY);
  const cut = await model.generate(PROMPT, { ...GREEDY, stop: [text.slice(3, 5)] });
  assert.deepEqual([cut.text, cut.finish], [text.slice(0, text.indexOf(text.slice(3, 5))), 'stop']);
  const vectors = await model.embed(wanted.embedded.texts);
  vectors.forEach((vector, i) => {
    const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
    assert.equal(bytes.toString('base64'), wanted.embedded.vectors[i]);
  });
  assert.deepEqual(await model.embed([]), []);
  const WRONG = Code.INVALID_ARGUMENT;
  await assertFails(WRONG, /./, () => model.grammar({ regex: '(' }));
  await assertFails(WRONG, /give either/, () => model.grammar({}));
  await assertFails(WRONG, /grammar is an Object/, () => model.generate('a', { grammar: {} }));
  await assertFails(WRONG, /adapter is a Grammar/, () => model.generate('a', { adapter: grammar }));
  await grammar.close();
  await assertFails(Code.INVALID_STATE, /the Grammar is closed/, () =>
    model.generate('a', { grammar }),
  );
  await assertFails(WRONG, /see its open/, () => new Grammar());
});

test('wrong options and prompts are refused', async () => {
  const WRONG = Code.INVALID_ARGUMENT;
  const fails = (pattern, options, prompt = [5]) =>
    assertFails(WRONG, pattern, () => model.generate(prompt, options));
  await fails(/top_p/, { topP: 9 });
  await fails(/topP is "x"/, { topP: 'x' });
  await fails(/temperature is NaN/, { temperature: NaN });
  await fails(/there is no top_p/, { top_p: 1 });
  await fails(/maxTokens is -1/, { maxTokens: -1 });
  await fails(/n is 0/, { n: 0 });
  await fails(/stop\[0\] is 3/, { stop: [3] });
  await fails(/./, {}, [2 ** 30]);
  await fails(/prompt is 5/, {}, 5);
  await fails(/prompt\[0\] is 1.5/, {}, [1.5]);
  await assertFails(WRONG, /topP is "x"/, () => model.stream([5], { topP: 'x' }).next());
  await assertFails(Code.NOT_SUPPORTED, /language model/, () =>
    LanguageModel.open(golden('add.pte')),
  );
  await assertFails(WRONG, /cache is "int4": there are automatic/, () =>
    LanguageModel.open(golden('llm/v1.pte'), { cache: 'int4' }),
  );
});

test('traces of steps', async () => {
  await assertFails(Code.INVALID_STATE, /./, () => model.saveTrace(made('none.etdump')));
  await model.startTrace({ values: 'times' });
  await model.generate(PROMPT, GREEDY);
  await model.stopTrace();
  await model.saveTrace(made('steps.etdump'));
  await assertFails(Code.INVALID_ARGUMENT, /values is 1/, () => model.startTrace({ values: 1 }));
});

test('a closed model is refused; its sessions live on', async () => {
  const other = await LanguageModel.open(golden('llm/v1.pte'), { threads: 1 });
  const session = await other.session();
  const last = other.generate(PROMPT, GREEDY);
  const closing = other.close();
  await assertFails(Code.INVALID_STATE, /the LanguageModel is closed/, () => other.generate('a'));
  await assertFails(Code.INVALID_STATE, /closed/, () => other.encode('a'));
  await assertFails(Code.INVALID_STATE, /closed/, () => other.info);
  assert.equal((await last).tokens.length, 8);
  await closing;
  assert.equal((await session.tokens()).length, 0);
  await session.close();
});
