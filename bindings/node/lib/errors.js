// RushlightError, and the codes of librushlight.
'use strict';

/** Codes, with ExecuTorch's numbers where it has one. */
const Code = Object.freeze({
  INTERNAL: 0x01,
  INVALID_STATE: 0x02,
  NOT_SUPPORTED: 0x10,
  NOT_IMPLEMENTED: 0x11,
  INVALID_ARGUMENT: 0x12,
  INVALID_TYPE: 0x13,
  OPERATOR_MISSING: 0x14,
  REGISTRATION_EXCEEDING_MAX_KERNELS: 0x15,
  REGISTRATION_ALREADY_REGISTERED: 0x16,
  NOT_FOUND: 0x20,
  MEMORY_ALLOCATION_FAILED: 0x21,
  ACCESS_FAILED: 0x22,
  INVALID_PROGRAM: 0x23,
  INVALID_EXTERNAL_DATA: 0x24,
  OUT_OF_RESOURCES: 0x25,
  DELEGATE_INVALID_COMPATIBILITY: 0x30,
  DELEGATE_MEMORY_ALLOCATION_FAILED: 0x31,
  DELEGATE_INVALID_HANDLE: 0x32,
  CANCELLED: 0x80,
});

/** What a call failed with. */
class RushlightError extends Error {
  /**
   * @param {number} code one of Code
   * @param {string} message says what came, what is allowed and what to do
   * @param {{instruction?: number, delegate?: number}} [where] that failed
   */
  constructor(code, message, where = {}) {
    super(message);
    this.name = 'RushlightError';
    this.code = code;
    this.instruction = where.instruction;
    this.delegate = where.delegate;
  }
}

/** An error of a wrong argument. */
function invalid(message) {
  return new RushlightError(Code.INVALID_ARGUMENT, message);
}

/** What the addon failed with, as an error: it throws plain objects. */
function errorOf(failure) {
  if (failure instanceof Error || typeof failure?.code !== 'number') return failure;
  const text = failure.text || 'there is not enough memory left, or the process ends';
  return new RushlightError(failure.code, text, failure);
}

module.exports = { Code, RushlightError, errorOf, invalid };
