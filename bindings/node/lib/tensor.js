// Tensors: a dtype and sizes over a typed array.
'use strict';

const { list, shown, whole } = require('./arguments.js');
const { invalid } = require('./errors.js');
const { attempt, native } = require('./native.js');

// The name of a dtype: its number, the array of its elements, and how many of them an element has.
const DTYPES = {
  uint8: { number: 0, array: Uint8Array, parts: 1 },
  int8: { number: 1, array: Int8Array, parts: 1 },
  int16: { number: 2, array: Int16Array, parts: 1 },
  int32: { number: 3, array: Int32Array, parts: 1 },
  int64: { number: 4, array: BigInt64Array, parts: 1 },
  float16: { number: 5, array: Uint16Array, parts: 1 },
  float32: { number: 6, array: Float32Array, parts: 1 },
  float64: { number: 7, array: Float64Array, parts: 1 },
  complex64: { number: 9, array: Float32Array, parts: 2 },
  complex128: { number: 10, array: Float64Array, parts: 2 },
  bool: { number: 11, array: Uint8Array, parts: 1 },
  bfloat16: { number: 15, array: Uint16Array, parts: 1 },
  uint16: { number: 27, array: Uint16Array, parts: 1 },
  uint32: { number: 28, array: Uint32Array, parts: 1 },
  uint64: { number: 29, array: BigUint64Array, parts: 1 },
};
// What an array without a dtype holds: the first dtype of each array but float16 and bool.
const DEFAULTS = [
  'uint8',
  'int8',
  'int16',
  'int32',
  'int64',
  'float32',
  'float64',
  'uint16',
].concat(['uint32', 'uint64']);
const MOST = 2 ** 31 - 1;

/** The facts about a dtype. */
function dtypeOf(name) {
  if (typeof name !== 'string' || !Object.hasOwn(DTYPES, name)) {
    throw invalid(`dtype is ${shown(name)}: there are ${Object.keys(DTYPES).join(', ')}`);
  }
  return DTYPES[name];
}

/** The name of a dtype's number. */
function dtypeName(number) {
  return Object.keys(DTYPES).find((name) => DTYPES[name].number === number) ?? `dtype ${number}`;
}

function countOf(sizes) {
  let count = 1;
  for (const size of sizes) count *= size;
  if (!Number.isSafeInteger(count)) throw invalid(`the sizes [${sizes}] have too many elements`);
  return count;
}

/** The strides of sizes in row-major order. */
function stridesOf(sizes) {
  const strides = new Array(sizes.length);
  let stride = 1;
  for (let k = sizes.length - 1; k >= 0; k--) {
    strides[k] = stride;
    stride *= Math.max(sizes[k], 1);
  }
  return strides;
}

function checkedSizes(sizes) {
  return list(sizes, 'sizes', (size, name) => whole(size, name, 0, MOST));
}

// Elements from the first to the last that sizes and strides reach, in parts of the array.
function reach(sizes, strides, parts) {
  if (sizes.includes(0)) return 0;
  return (1 + sizes.reduce((last, size, k) => last + (size - 1) * strides[k], 0)) * parts;
}

/** Elements of one dtype in memory that others may share. */
class Tensor {
  #dtype;
  #sizes;
  #strides;
  #data;

  /**
   * A tensor over a typed array, which it shares.
   *
   * @param {TypedArray} data its elements; int64 as a BigInt64Array, float16 as a Uint16Array
   * @param {number[]} sizes of the dimensions
   * @param {{dtype?: string, strides?: number[]}} [options] dtype: that of the array's type if it is
   *     absent; strides: in elements, row-major if they are absent
   */
  constructor(data, sizes, { dtype, strides } = {}) {
    const name = dtype ?? DEFAULTS.find((one) => data instanceof DTYPES[one].array);
    if (name === undefined) {
      throw invalid(`data is ${shown(data)}: give a typed array, such as a Float32Array`);
    }
    const facts = dtypeOf(name);
    if (!(data instanceof facts.array)) {
      throw invalid(`data is ${shown(data)}: a tensor of ${name} needs a ${facts.array.name}`);
    }
    this.#sizes = checkedSizes(sizes);
    const dense = stridesOf(this.#sizes);
    this.#strides = strides === undefined ? dense : list(strides, 'strides', whole);
    if (this.#strides.length !== this.#sizes.length) {
      throw invalid(`strides has ${this.#strides.length} numbers, sizes has ${this.#sizes.length}`);
    }
    const needed =
      strides === undefined
        ? countOf(this.#sizes) * facts.parts
        : reach(this.#sizes, this.#strides, facts.parts);
    if (strides === undefined ? data.length !== needed : data.length < needed) {
      throw invalid(`data has ${data.length} elements, the sizes [${this.#sizes}] need ${needed}`);
    }
    this.#dtype = name;
    this.#data = data;
  }

  /** A tensor of zeros, in memory that runs read and write without a copy. */
  static zeros(dtype, sizes) {
    const facts = dtypeOf(dtype);
    const count = countOf(checkedSizes(sizes)) * facts.parts;
    const buffer = attempt(() => native.newBuffer(count * facts.array.BYTES_PER_ELEMENT));
    return new Tensor(new facts.array(buffer), sizes, { dtype });
  }

  /** A tensor of numbers, bigints or booleans, in memory as that of zeros(). */
  static from(values, sizes, dtype = 'float32') {
    const tensor = Tensor.zeros(dtype, sizes);
    if (values.length !== tensor.data.length) {
      throw invalid(
        `${values.length} values for the sizes [${sizes}], which need ${tensor.data.length}`,
      );
    }
    const isBig = tensor.data instanceof BigInt64Array || tensor.data instanceof BigUint64Array;
    tensor.data.set(isBig ? Array.from(values, BigInt) : values);
    return tensor;
  }

  /** The name of the type of its elements, such as 'float32'. */
  get dtype() {
    return this.#dtype;
  }

  /** The sizes of its dimensions. */
  get sizes() {
    return [...this.#sizes];
  }

  /** Strides in elements. */
  get strides() {
    return [...this.#strides];
  }

  /** Its elements, shared. */
  get data() {
    return this.#data;
  }

  /** What the addon takes; `name` is that of the input or output. */
  static forAddon(tensor, name) {
    const data = tensor.#data;
    const facts = DTYPES[tensor.#dtype];
    if (data.length < reach(tensor.#sizes, tensor.#strides, facts.parts)) {
      throw invalid(
        `the memory of ${name} was detached or has shrunk: it has ${data.byteLength} bytes left; ` +
          'wait for the run before you transfer a buffer',
      );
    }
    return { data, dtype: facts.number, sizes: tensor.#sizes, strides: tensor.#strides };
  }

  /** The tensor that the addon gave: {dtype, sizes, buffer}, or in memory of `target` with strides. */
  static ofAddon(raw, target) {
    const dtype = dtypeName(raw.dtype);
    const facts = dtypeOf(dtype);
    if (raw.buffer !== undefined) {
      return new Tensor(new facts.array(raw.buffer), raw.sizes, { dtype });
    }
    const { sizes, strides } = raw;
    const isByRows = stridesOf(sizes).every((stride, k) => sizes[k] === 1 || stride === strides[k]);
    const { buffer, byteOffset } = target.#data;
    const data = new facts.array(buffer, byteOffset, reach(sizes, strides, facts.parts));
    return new Tensor(data, sizes, isByRows ? { dtype } : { dtype, strides });
  }
}

module.exports = { Tensor, dtypeName, dtypeOf, stridesOf };
