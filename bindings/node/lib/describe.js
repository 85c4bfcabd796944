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

function describeValue(raw) {
  const kind = KINDS[raw.kind];
  if (kind === 'tensor') {
    return Object.freeze({
      name: raw.name,
      kind,
      dtype: dtypeName(raw.dtype),
      minSizes: Object.freeze(raw.minSizes),
      maxSizes: Object.freeze(raw.maxSizes.map((size) => (size === NO_BOUND ? Infinity : size))),
      symbols: Object.freeze(raw.symbols),
      dimOrder: Object.freeze(raw.dimOrder),
      nbytes: raw.nbytes === ENDLESS ? Infinity : Number(raw.nbytes),
      isPlanned: raw.isPlanned !== 0,
    });
  }
  const info = { name: raw.name, kind, isFixed: raw.isFixed !== 0 };
  if (kind === 'int') {
    info.value = exact(raw.value);
    info.least = exact(raw.least);
    info.most = exact(raw.most);
  } else if (raw.value !== undefined) {
    info.value = raw.value;
  }
  return Object.freeze(info);
}

/** A method: its name, inputs, outputs, and the bytes that it needs. */
function describeMethod(raw) {
  return Object.freeze({
    name: raw.name,
    inputs: Object.freeze(raw.inputs.map(describeValue)),
    outputs: Object.freeze(raw.outputs.map(describeValue)),
    relations: Object.freeze(raw.relations),
    memory: Object.freeze({
      arenas: Number(raw.arenas),
      sharedArenas: Number(raw.sharedArenas),
      structures: Number(raw.structures),
      outputs: Number(raw.outputBytes),
      scratch: Number(raw.scratch),
    }),
    instructions: Number(raw.instructions),
  });
}

module.exports = { KINDS, describeMethod, exact };
