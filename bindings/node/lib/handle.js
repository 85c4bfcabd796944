// What is open in the addon: the order of its calls, and its end.
'use strict';

const { Code, RushlightError, invalid } = require('./errors.js');
const { native, settled } = require('./native.js');

// Only the library's own files construct handles.
const OWN = Symbol('own');

/** Something that is open until close(), or until it is collected. */
class Handle {
  #external;
  #closing = null; // the promise of close()
  #active = new Set(); // promises of calls that have not ended
  #last = Promise.resolve(); // settles, never rejected, when the last call in order has ended

  constructor(own, external) {
    if (own !== OWN) throw invalid(`a ${new.target.name} cannot be made by new: see its open()`);
    this.#external = external;
  }

  /** The value of the addon; a closed handle is refused. */
  static external(handle) {
    if (handle.#closing !== null) {
      throw new RushlightError(Code.INVALID_STATE, `the ${handle.constructor.name} is closed`);
    }
    return handle.#external;
  }

  /** Whether a value is a handle of `type` that open() gave. */
  static is(value, type) {
    return (
      typeof value === 'object' && value !== null && #external in value && value instanceof type
    );
  }

  /** Calls `work(external)` beside others; close() waits for it. */
  static beside(handle, work) {
    const external = Handle.external(handle);
    const done = (async () => work(external))();
    handle.#keep(done);
    return done;
  }

  /**
   * Calls `work(external)` when all calls before it have ended. A call that waits is dropped when
   * `signal` aborts; one that has begun hears of that itself.
   */
  static inOrder(handle, work, signal) {
    const external = Handle.external(handle);
    const done = new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      let hasBegun = false;
      const drop = () => hasBegun || reject(signal.reason);
      signal?.addEventListener('abort', drop, { once: true });
      handle.#last = handle.#last.then(async () => {
        hasBegun = true;
        try {
          if (!signal?.aborted) resolve(await work(external));
        } catch (error) {
          reject(error);
        } finally {
          signal?.removeEventListener('abort', drop);
        }
      });
    });
    handle.#keep(done);
    return done;
  }

  #keep(promise) {
    const forget = () => this.#active.delete(promise);
    this.#active.add(promise);
    promise.then(forget, forget);
  }

  /** Closes it when what was asked before has ended. Closing it again does nothing. */
  close() {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end() {
    await Promise.allSettled(this.#active);
    await this.#last;
    await settled(() => native.command(this.#external, 'close', {}));
  }
}

if (Symbol.asyncDispose !== undefined) {
  Object.defineProperty(Handle.prototype, Symbol.asyncDispose, {
    value() {
      return this.close();
    },
  });
}

/** A command of the addon, in order. */
function command(handle, name, fields = {}) {
  return Handle.inOrder(handle, (external) =>
    settled(() => native.command(external, name, fields)),
  );
}

module.exports = { Handle, OWN, command };
