// Checks of arguments: each error names the argument, what came and what is allowed.
'use strict';

const { fileURLToPath } = require('node:url');
const { invalid } = require('./errors.js');

const U64 = (1n << 64n) - 1n;

/** A value as an error shows it. */
function shown(value) {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object' && value !== null) {
    const type = String(value.constructor?.name || 'object');
    return `${/^[aeiou]/i.test(type) ? 'an' : 'a'} ${type}`;
  }
  return typeof value === 'function' ? 'a function' : String(value);
}

/** A whole number from `least` to `most`, as the addon takes it. */
function whole(value, name, least = 0, most = Number.MAX_SAFE_INTEGER) {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw invalid(`${name} is ${shown(value)}: give a whole number from ${least} to ${most}`);
  }
  return value;
}

/** A number or a bigint of 64 bits without a sign, as a bigint. */
function whole64(value, name) {
  if (typeof value === 'bigint' && value >= 0n && value <= U64) return value;
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw invalid(
    `${name} is ${shown(value)}: give a whole number from 0 on, beyond 2 ** 53 a bigint`,
  );
}

/** A finite number. */
function real(value, name) {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw invalid(`${name} is ${shown(value)}: give a finite number`);
  }
  return value;
}

function flag(value, name) {
  if (typeof value !== 'boolean') throw invalid(`${name} is ${shown(value)}: give true or false`);
  return value;
}

function string(value, name) {
  if (typeof value !== 'string') throw invalid(`${name} is ${shown(value)}: give a string`);
  return value;
}

/** A string that the C interface takes with a NUL behind it. */
function plain(value, name) {
  if (string(value, name).includes('\0')) throw invalid(`${name} has a NUL character inside`);
  return value;
}

/** A path as a string: of a string or a file URL. */
function path(value, name = 'path') {
  if (value instanceof URL) return plain(fileURLToPath(value), name);
  if (typeof value !== 'string') {
    throw invalid(`${name} is ${shown(value)}: give a string or a file URL`);
  }
  return plain(value, name);
}

function list(value, name, item) {
  if (!Array.isArray(value)) throw invalid(`${name} is ${shown(value)}: give an array`);
  return value.map((one, i) => item(one, `${name}[${i}]`));
}

/** The bytes of a typed array, an ArrayBuffer or a SharedArrayBuffer. */
function bytes(value, name) {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    return new Uint8Array(value);
  }
  throw invalid(`${name} is ${shown(value)}: give a Buffer, a typed array or an ArrayBuffer`);
}

/** Options by a table of checks: {name: (value, name) => what the addon takes}. */
function options(object, checks, what = 'options') {
  if (object === undefined || object === null) return {};
  if (typeof object !== 'object') throw invalid(`${what} is ${shown(object)}: give an object`);
  const taken = {};
  for (const [name, value] of Object.entries(object)) {
    if (!Object.hasOwn(checks, name)) {
      throw invalid(`${what}: there is no ${name}; there are ${Object.keys(checks).join(', ')}`);
    }
    if (value !== undefined) taken[name] = checks[name](value, name);
  }
  return taken;
}

function signal(value, name) {
  if (!(value instanceof AbortSignal)) {
    throw invalid(`${name} is ${shown(value)}: give the signal of an AbortController`);
  }
  return value;
}

module.exports = {
  ...{ bytes, flag, list, options, path, plain, real, shown, signal, string, whole, whole64 },
};
