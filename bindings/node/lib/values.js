// Values of JavaScript as inputs of a method, and its outputs as values.
'use strict';

const { shown } = require('./arguments.js');
const { KINDS, exact } = require('./describe.js');
const { invalid } = require('./errors.js');
const { Tensor } = require('./tensor.js');

const NONE = 0;
const TENSOR = 1;
const STRING = 2;
const DOUBLE = 3;
const INT = 4;
const BOOL = 5;

function wholeOf(input, name) {
  const isWhole = typeof input === 'bigint' || Number.isSafeInteger(input);
  const whole = isWhole ? BigInt(input) : 0n;
  if (!isWhole || BigInt.asIntN(64, whole) !== whole) {
    throw invalid(
      `${name} is ${shown(input)}: give a whole number of 64 bits, beyond 2 ** 53 a bigint`,
    );
  }
  return BigInt.asUintN(64, whole);
}

/** What the addon takes for an input; a number is an int or a double as the method has it. */
function inputOf(input, index, method) {
  const wanted = method.inputs[index];
  const name = wanted?.name ? `input '${wanted.name}'` : `input ${index}`;
  if (input instanceof Tensor) return { kind: TENSOR, ...Tensor.forAddon(input, name) };
  switch (typeof input) {
    case 'number':
      if (wanted?.kind === 'int') return { kind: INT, value: wholeOf(input, name) };
      return { kind: DOUBLE, value: input };
    case 'bigint':
      return { kind: INT, value: wholeOf(input, name) };
    case 'boolean':
      return { kind: BOOL, value: input ? 1n : 0n };
    case 'string':
      return { kind: STRING, value: input };
    default:
  }
  if (input === null || input === undefined) return { kind: NONE };
  throw invalid(
    `${name} of ${method.name} is ${shown(input)}: give a Tensor (new Tensor(data, sizes)), a number, ` +
      'a bigint, a boolean, a string or null',
  );
}

/** A value for what the addon gave; `target` is the caller's tensor for it, if there is one. */
function outputOf(raw, target) {
  switch (raw.kind) {
    case TENSOR:
      return Tensor.ofAddon(raw, target);
    case INT:
      return exact(raw.value);
    case BOOL:
      return raw.value !== 0n;
    case DOUBLE:
    case STRING:
      return raw.value;
    case NONE:
      return null;
    default:
      throw invalid(`an output is a ${KINDS[raw.kind]}, which the C interface does not give`);
  }
}

module.exports = { inputOf, outputOf };
