// The package by import, and its types: index.d.ts names what there is.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import rushlight, {
  Adapter,
  Code,
  Grammar,
  LanguageModel,
  Module,
  RushlightError,
  Session,
  Tensor,
  version,
} from 'rushlight';

const require = createRequire(import.meta.url);
const named = {
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

test('import gives what require gives', () => {
  assert.deepEqual(Object.keys(rushlight).sort(), Object.keys(named).sort());
  for (const [name, value] of Object.entries(named))
    assert.equal(require('rushlight')[name], value);
});

/** The names that a class declares in index.d.ts. */
function declared(types, name) {
  const [, body] = types.match(new RegExp(`class ${name}\\b[^{]*\\{\\n(.*?)\\n\\}`, 's'));
  const members = body.matchAll(/^ {2}(?:static |get )?(\w+)(?:<[^>]*>+)?\(/gm);
  return new Set(Array.from(members, (match) => match[1]));
}

test('the version is that of the library', () => {
  assert.equal(require('rushlight/package.json').version, version);
});

test('the types name what there is', () => {
  const types = readFileSync(
    require.resolve('rushlight').replace(/index\.js$/, 'index.d.ts'),
    'utf8',
  );
  for (const [name, number] of Object.entries(Code)) {
    assert.ok(types.includes(`${name}: 0x${number.toString(16).padStart(2, '0')};`), name);
  }
  const inner = new Set([
    'constructor',
    'forAddon',
    'ofAddon',
    'external',
    'is',
    'beside',
    'inOrder',
  ]);
  for (const type of [LanguageModel, Module, Session, Tensor]) {
    const there = [
      ...Object.getOwnPropertyNames(type),
      ...Object.getOwnPropertyNames(type.prototype),
    ].filter((name) => !inner.has(name) && !['length', 'name', 'prototype'].includes(name));
    const told = declared(types, type.name);
    told.delete('constructor');
    assert.deepEqual([...told].sort(), there.sort(), type.name);
  }
});
