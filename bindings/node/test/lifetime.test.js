// Memory and threads: detached buffers, collected objects, workers, ends of processes.
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { Code, Module, LanguageModel, Tensor } = require('rushlight');
const { assertFails, expected, floats, golden, made } = require('./support.js');

const MB = 2 ** 20;
const COUNT = expected.slow;

/** Takes a buffer away from its arrays, as far as it can be; whether that was possible. */
function detach(buffer) {
  try {
    if (buffer.transfer !== undefined) buffer.transfer();
    else structuredClone(buffer, { transfer: [buffer] });
  } catch (error) {
    assert.match(String(error), /DataCloneError|detach/);
  }
  return buffer.byteLength === 0;
}

test('a buffer may be detached while a run uses it', async () => {
  const module = await Module.open(made('slow.pte'));
  const plain = new Tensor(new Float32Array(COUNT).fill(0), [COUNT]);
  const own = Tensor.zeros('float32', [COUNT]);
  const target = Tensor.zeros('float32', [COUNT]);
  const run = module.run('forward', [plain], { outputs: [target] });
  const second = module.run('forward', [own]);
  const third = module.run('forward', [plain]);
  await sleep(20); // the first run has begun
  assert.ok(detach(plain.data.buffer));
  detach(target.data.buffer);
  detach(own.data.buffer);
  global.gc();
  new Array(100).fill(0).map(() => new Float32Array(COUNT).fill(9));
  await run.then(
    ([y]) => assert.equal(y.data[0], 0),
    (error) => assert.match(error.message, /detached|elements/),
  );
  await second.then(
    ([y]) => assert.equal(y.data[0], 0),
    (error) => assert.match(error.message, /input 'x' was detached/),
  );
  await assertFails(Code.INVALID_ARGUMENT, /memory of input 'x' was detached/, () => third);
  await module.close();
});

test('a resizable buffer that shrinks is refused or was copied', async (t) => {
  if (ArrayBuffer.prototype.resize === undefined) return t.skip('this Node has none');
  const module = await Module.open(made('slow.pte'));
  const buffer = new ArrayBuffer(COUNT * 4, { maxByteLength: COUNT * 4 });
  const x = new Tensor(new Float32Array(buffer), [COUNT]);
  const run = module.forward(x);
  await sleep(20);
  buffer.resize(16);
  assert.equal((await run)[0].data[0], 0);
  await assertFails(Code.INVALID_ARGUMENT, /detached or has shrunk/, () => module.forward(x));
  await module.close();
});

test('inputs and modules may be collected while a run uses them', async () => {
  let run = (await Module.open(made('slow.pte'))).forward(Tensor.zeros('float32', [COUNT]));
  for (let i = 0; i < 5; i++) {
    await sleep(5);
    global.gc();
  }
  const [y] = await run;
  run = null;
  assert.equal(y.data[0], 0);
});

async function loads(count, use) {
  for (let i = 0; i < count; i++) {
    await use(i);
    if (i % 5 === 4) {
      global.gc();
      await sleep(0); // finalizers run between turns of the loop
    }
  }
  global.gc();
  await sleep(5);
  global.gc();
  return process.memoryUsage.rss();
}

test('memory is given back without close()', async () => {
  const x = Tensor.zeros('float32', [COUNT]).data;
  const use = async (i) => {
    const module = await Module.open(made('large.pte'));
    await module.forward(new Tensor(x, [COUNT]));
    if (i % 3 === 0) await module.close();
    if (i % 3 === 1) await (await module.fork()).snapshot();
  };
  const before = await loads(20, use);
  const after = await loads(150, use);
  // Each load takes some 8 MB.
  assert.ok(after - before < 120 * MB, `${before / MB} MB, then ${after / MB} MB`);
});

test('language models and their sessions are given back', async () => {
  const use = async () => {
    const model = await LanguageModel.open(golden('llm/v1.pte'), { threads: 1 });
    const session = await model.session();
    await session.generate([5, 6, 7], { maxTokens: 3, temperature: 0 });
    await (await model.grammar({ regex: '[a-z]+' })).close();
  };
  const before = await loads(30, use);
  const after = await loads(200, use);
  assert.ok(after - before < 60 * MB, `${before / MB} MB, then ${after / MB} MB`);
});

test('the collector closes modules: there are more than handles can be open', async () => {
  const module = await Module.open(golden('add.pte'));
  for (let i = 0; i < 70_000; i += 500) {
    await Promise.all(Array.from({ length: 500 }, () => module.clone()));
    global.gc();
    await sleep(0);
  }
  await module.close();
});

/** A process with this code ends by itself, with this status. */
function assertExits(wanted, code) {
  const options = { timeout: 60_000, encoding: 'utf8' };
  const { status, signal, stderr } = spawnSync(process.execPath, ['-e', code], options);
  assert.deepEqual([status, signal], [wanted, null], stderr);
}

const WORK = `
const { parentPort, workerData } = require('node:worker_threads');
const { Module, LanguageModel, Tensor } = require('rushlight');
(async () => {
  const module = await Module.open(workerData.path);
  const x = Tensor.zeros('float32', workerData.sizes);
  x.data.fill(workerData.value);
  let y = null;
  for (let i = 0; i < workerData.runs; i++) [y] = await module.forward(x, x);
  parentPort.postMessage(y.data.slice());
})();`;

test('workers have modules of their own', async () => {
  const results = await Promise.all(
    [1, 2, 3, 4].map(
      (value) =>
        new Promise((resolve, reject) => {
          const workerData = { path: golden('add.pte'), sizes: [2, 3], value, runs: 50 };
          const worker = new Worker(WORK, { eval: true, workerData });
          worker.on('message', resolve).on('error', reject);
        }),
    ),
  );
  assert.deepEqual(
    results.map((y) => y[5]),
    [2, 4, 6, 8],
  );
});

test('workers are terminated in the middle of a run and of a text', async () => {
  const run = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { Module, Tensor } = require('rushlight');
    (async () => {
      const module = await Module.open(workerData.slow);
      module.forward(Tensor.zeros('float32', [workerData.count]));
      parentPort.postMessage('runs');
    })();`;
  const text = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { LanguageModel } = require('rushlight');
    (async () => {
      const model = await LanguageModel.open(workerData.llm, { threads: 1 });
      const endless = { maxTokens: 2 ** 40, shifts: true, ignoresEnd: true, temperature: 1 };
      model.generate([5, 6, 7], endless);
      for await (const piece of model.stream([5, 6], endless)) parentPort.postMessage('runs');
    })();`;
  const workerData = { slow: made('slow.pte'), llm: golden('llm/v1.pte'), count: COUNT };
  for (const code of [run, text, text]) {
    const worker = new Worker(code, { eval: true, workerData });
    await new Promise((resolve, reject) => worker.once('message', resolve).on('error', reject));
    await worker.terminate();
  }
  const module = await Module.open(golden('add.pte'));
  const x = floats([1, 2, 3, 4, 5, 6], [2, 3]);
  assert.equal((await module.forward(x, x))[0].data[0], 2);
  await module.close();
});

test('the process may end while a worker computes', () => {
  const code = `
    const { Worker } = require('node:worker_threads');
    const code = \`
      const { parentPort } = require('node:worker_threads');
      const { LanguageModel, Module, Tensor } = require('rushlight');
      (async () => {
        const model = await LanguageModel.open(${JSON.stringify(golden('llm/v1.pte'))});
        const module = await Module.open(${JSON.stringify(made('slow.pte'))});
        module.forward(Tensor.zeros('float32', [${COUNT}])).catch(() => {});
        const endless = { maxTokens: 2 ** 40, shifts: true, ignoresEnd: true };
        for await (const piece of model.stream([5, 6], endless)) parentPort.postMessage('runs');
      })();\`;
    new Worker(code, { eval: true }).once('message', () => process.exit(7));`;
  assertExits(7, code);
});

test('a worker may end itself in the middle of a text', () => {
  const code = `
    const { Worker } = require('node:worker_threads');
    const code = \`
      const { LanguageModel } = require('rushlight');
      (async () => {
        const model = await LanguageModel.open(${JSON.stringify(golden('llm/v1.pte'))});
        const endless = { maxTokens: 2 ** 40, shifts: true, ignoresEnd: true };
        for await (const piece of model.stream([5, 6], endless)) process.exit(4);
      })();\`;
    new Worker(code, { eval: true }).once('exit', (status) => process.exit(status + 1));`;
  assertExits(5, code);
});

test('the process may end in the middle of a run and of a text', () => {
  const code = `
    const { Module, LanguageModel, Tensor } = require('rushlight');
    (async () => {
      const model = await LanguageModel.open(${JSON.stringify(golden('llm/v1.pte'))});
      const module = await Module.open(${JSON.stringify(made('slow.pte'))});
      const endless = { maxTokens: 2 ** 40, shifts: true, ignoresEnd: true };
      for (let i = 0; i < 3; i++) model.generate([5, 6, 7], endless).catch(() => {});
      for (let i = 0; i < 3; i++) module.forward(Tensor.zeros('float32', [${COUNT}])).catch(() => {});
      for await (const piece of model.stream([5, 6], endless)) process.exit(7);
    })();`;
  assertExits(7, code);
});
