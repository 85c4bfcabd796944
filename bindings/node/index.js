// The package, for require().
'use strict';

const { Code, RushlightError } = require('./lib/errors.js');
const { LanguageModel } = require('./lib/language_model.js');
const { Module } = require('./lib/module.js');
const { native } = require('./lib/native.js');
const { Adapter, Grammar, Session } = require('./lib/session.js');
const { Tensor } = require('./lib/tensor.js');

/** The release of Rushlight. */
const version = native.version();

module.exports = {
  Adapter,
  Code,
  Grammar,
  LanguageModel,
  Module,
  RushlightError,
  Session,
  Tensor,
  version,
};
