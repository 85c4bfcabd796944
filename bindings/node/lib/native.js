// The addon, and how its calls fail.
'use strict';

const { join } = require('node:path');
const { errorOf } = require('./errors.js');

function load() {
  const folder = `${process.platform}-${process.arch}`;
  const path =
    process.env.RUSHLIGHT_NODE_ADDON ?? join(__dirname, '..', 'native', folder, 'rushlight.node');
  try {
    return require(path);
  } catch (cause) {
    throw new Error(
      `rushlight: ${path} cannot be loaded (${cause.message}); build it for this system with ` +
        'cmake -S bindings/node, or name it by RUSHLIGHT_NODE_ADDON',
      { cause },
    );
  }
}

const native = load();

// The process does not wait for generations when it exits, but for runs: both are ended.
process.on('exit', () => native.stop());

/** Calls the addon; what it throws becomes a RushlightError. */
function attempt(call) {
  try {
    return call();
  } catch (failure) {
    throw errorOf(failure);
  }
}

/** The result of a task of the addon; what it fails with becomes a RushlightError. */
async function settled(start) {
  try {
    return await start();
  } catch (failure) {
    throw errorOf(failure);
  }
}

module.exports = { attempt, native, settled };
