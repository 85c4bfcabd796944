// What methods take and give, as the addon describes them, for programs.
'use strict';

const { dtypeName } = require('./tensor.js');

const KINDS = ['none', 'tensor', 'string', 'double', 'int', 'bool', 'list'];
const NO_BOUND = 2 ** 31 - 1;
const ENDLESS = (1n << 64n) - 1n;

/** A bigint as a number if that is exact. */
function exact(whole) {
  const number = Number(whole);
  return Number.isSafeInteger(number) ? number : whole;
}

function describeValue(given) {
  const kind = KINDS[given.kind];
  if (kind === 'tensor') {
    return Object.freeze({
      name: given.name,
      kind,
      dtype: dtypeName(given.dtype),
      minSizes: Object.freeze(given.minSizes),
      maxSizes: Object.freeze(given.maxSizes.map((size) => (size === NO_BOUND ? Infinity : size))),
      symbols: Object.freeze(given.symbols),
      dimOrder: Object.freeze(given.dimOrder),
      nbytes: given.nbytes === ENDLESS ? Infinity : Number(given.nbytes),
      isPlanned: given.isPlanned !== 0,
    });
  }
  const info = { name: given.name, kind, isFixed: given.isFixed !== 0 };
  if (kind === 'int') {
    info.value = exact(given.value);
    info.least = exact(given.least);
    info.most = exact(given.most);
  } else if (given.value !== undefined) {
    info.value = given.value;
  }
  return Object.freeze(info);
}

/** A method: its name, inputs, outputs, and the bytes that it needs. */
function describeMethod(given) {
  return Object.freeze({
    name: given.name,
    inputs: Object.freeze(given.inputs.map(describeValue)),
    outputs: Object.freeze(given.outputs.map(describeValue)),
    memory: Object.freeze({
      arenas: Number(given.arenas),
      sharedArenas: Number(given.sharedArenas),
      structures: Number(given.structures),
      outputs: Number(given.outputBytes),
      scratch: Number(given.scratch),
    }),
    instructions: Number(given.instructions),
  });
}

module.exports = { KINDS, describeMethod, exact };
