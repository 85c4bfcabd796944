// Options of traces.
'use strict';

const check = require('./arguments.js');
const { invalid } = require('./errors.js');

const LEVELS = { times: 0, outputs: 1, all: 2 };
const OPTIONS = {
  values: (value, name) => {
    if (typeof value === 'string' && Object.hasOwn(LEVELS, value)) return LEVELS[value];
    throw invalid(`${name} is ${check.shown(value)}: there are ${Object.keys(LEVELS).join(', ')}`);
  },
  bytes: check.whole64,
  valueBytes: check.whole64,
};

/** The options of startTrace() as the addon's command takes them. */
function traceFields(options) {
  const { values: first, bytes: second, valueBytes: third } = check.options(options, OPTIONS);
  return { first, second, third };
}

module.exports = { traceFields };
