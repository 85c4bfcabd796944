// What the tests share: programs with expected outputs, which the run of the tests has made, and
// checks of errors.
'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { RushlightError, Tensor } = require('rushlight');

const FOLDER = process.env.RUSHLIGHT_TEST_PROGRAMS;
const GOLDEN = process.env.RUSHLIGHT_TEST_GOLDEN;

/** The path of a program that was made for these tests. */
function made(name) {
  return join(FOLDER, name);
}

/** The path of a program that must always load. */
function golden(name) {
  return join(GOLDEN, name);
}

/** What Python computed: see the test that made the folder. */
const expected = JSON.parse(readFileSync(made('expected.json'), 'utf8'));

/** A value of expected.json: tensors are {dtype, sizes, base64}. */
function valueOf(stored) {
  if (stored === null || typeof stored !== 'object') return stored;
  const tensor = Tensor.zeros(stored.dtype, stored.sizes);
  bytesOf(tensor).set(Buffer.from(stored.base64, 'base64'));
  return tensor;
}

function bytesOf(tensor) {
  const { buffer, byteOffset, byteLength } = tensor.data;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Outputs are those of expected.json, bit by bit. */
function assertOutputs(outputs, wanted) {
  assert.equal(outputs.length, wanted.length);
  outputs.forEach((output, i) => {
    const want = valueOf(wanted[i]);
    if (!(want instanceof Tensor)) {
      assert.deepEqual(output, want);
      return;
    }
    assert.equal(output.dtype, want.dtype);
    assert.deepEqual(output.sizes, want.sizes);
    assert.deepEqual(bytesOf(output), bytesOf(want));
  });
}

/** A call fails with a RushlightError of this code, whose text matches. */
async function assertFails(code, pattern, call) {
  await assert.rejects(
    async () => call(),
    (error) => {
      assert.ok(error instanceof RushlightError, String(error.stack));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, pattern);
      return true;
    },
  );
}

function floats(values, sizes) {
  return new Tensor(Float32Array.from(values), sizes ?? [values.length]);
}

module.exports = { assertFails, assertOutputs, bytesOf, expected, floats, golden, made, valueOf };
