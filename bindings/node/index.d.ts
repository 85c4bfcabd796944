// Types of the package; what each name does is said in docs/node.md and beside the code.

export const version: string;

/** Codes of errors, with ExecuTorch's numbers where it has one. */
export const Code: {
  readonly INTERNAL: 0x01;
  readonly INVALID_STATE: 0x02;
  readonly NOT_SUPPORTED: 0x10;
  readonly NOT_IMPLEMENTED: 0x11;
  readonly INVALID_ARGUMENT: 0x12;
  readonly INVALID_TYPE: 0x13;
  readonly OPERATOR_MISSING: 0x14;
  readonly REGISTRATION_EXCEEDING_MAX_KERNELS: 0x15;
  readonly REGISTRATION_ALREADY_REGISTERED: 0x16;
  readonly NOT_FOUND: 0x20;
  readonly MEMORY_ALLOCATION_FAILED: 0x21;
  readonly ACCESS_FAILED: 0x22;
  readonly INVALID_PROGRAM: 0x23;
  readonly INVALID_EXTERNAL_DATA: 0x24;
  readonly OUT_OF_RESOURCES: 0x25;
  readonly DELEGATE_INVALID_COMPATIBILITY: 0x30;
  readonly DELEGATE_MEMORY_ALLOCATION_FAILED: 0x31;
  readonly DELEGATE_INVALID_HANDLE: 0x32;
  readonly CANCELLED: 0x80;
};

/** What a call failed with. */
export class RushlightError extends Error {
  constructor(code: number, message: string, where?: { instruction?: number; delegate?: number });
  /** One of Code. */
  readonly code: number;
  /** Of the method, that failed. */
  readonly instruction?: number;
  /** Among the method's delegates, that failed. */
  readonly delegate?: number;
}

/** The array that has the elements of each dtype; an element of a complex dtype takes two. */
export interface Arrays {
  uint8: Uint8Array;
  int8: Int8Array;
  int16: Int16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  float16: Uint16Array;
  float32: Float32Array;
  float64: Float64Array;
  complex64: Float32Array;
  complex128: Float64Array;
  bool: Uint8Array;
  bfloat16: Uint16Array;
  uint16: Uint16Array;
  uint32: Uint32Array;
  uint64: BigUint64Array;
}
export type DType = keyof Arrays;
export type Bytes = ArrayBufferView | ArrayBuffer | SharedArrayBuffer;
export type Path = string | URL;

/** Elements of one dtype in memory that others may share. */
export class Tensor<D extends DType = DType> {
  /** A tensor over a typed array, which it shares; strides in elements, row-major if absent. */
  constructor(
    data: Arrays[D],
    sizes: readonly number[],
    options?: { dtype?: D; strides?: readonly number[] },
  );
  /** A tensor of zeros, in memory that runs read and write without a copy. */
  static zeros<D extends DType>(dtype: D, sizes: readonly number[]): Tensor<D>;
  /** A tensor of numbers, bigints or booleans, in memory as that of zeros(). */
  static from<D extends DType = 'float32'>(
    values: ArrayLike<number> | ArrayLike<bigint> | ArrayLike<boolean>,
    sizes: readonly number[],
    dtype?: D,
  ): Tensor<D>;
  get dtype(): D;
  get sizes(): number[];
  get strides(): number[];
  /** Its elements, shared. */
  get data(): Arrays[D];
}

/** What open() gives; it is closed by close(), or when it is collected. */
declare class Handle {
  protected constructor();
  /** Closes it when what was asked before has ended. */
  close(): Promise<void>;
  /** For `await using`, where there is one. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TensorInfo {
  /** Of an input, such as "x"; empty if the program has none. */
  readonly name: string;
  readonly kind: 'tensor';
  readonly dtype: DType;
  readonly minSizes: readonly number[];
  /** Infinity: no bound. */
  readonly maxSizes: readonly number[];
  /** Sizes of one number, from 1 on, are equal in a call; 0: not tied to others. */
  readonly symbols: readonly number[];
  readonly dimOrder: readonly number[];
  /** Of a tensor of the greatest sizes. */
  readonly nbytes: number;
  /** It lies in an arena, not in memory of the caller. */
  readonly isPlanned: boolean;
}
export interface ScalarInfo {
  readonly name: string;
  readonly kind: 'none' | 'string' | 'double' | 'int' | 'bool' | 'list';
  /** An input must have the value at export. */
  readonly isFixed: boolean;
  /** At export. */
  readonly value?: number | bigint | boolean | string;
  readonly least?: number | bigint;
  readonly most?: number | bigint;
}
export type ValueInfo = TensorInfo | ScalarInfo;
export interface MethodInfo {
  readonly name: string;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  /** What inputs have to do with each other; a run that does not keep to it is refused. */
  readonly relations: readonly string[];
  /** Bytes that it takes, or would take. */
  readonly memory: {
    readonly arenas: number;
    readonly sharedArenas: number;
    readonly structures: number;
    readonly outputs: number;
    readonly scratch: number;
  };
  readonly instructions: number;
}

export interface ModuleOptions {
  /** For kernels; 0: one for each core. */
  threads?: number;
  /** Bytes for methods; 0: no limit. */
  memoryLimit?: number | bigint;
  scratchBytes?: number | bigint;
  maxInstructions?: number | bigint;
  /** The .ptd that belongs to the program. */
  dataPath?: Path;
  /** Shared libraries with backends, and with kernels for operators of your own. */
  backends?: readonly Path[];
  kernels?: readonly Path[];
  /** The file is read, not mapped, and may be written meanwhile. */
  readsFile?: boolean;
  /** Each use asks whether the file has changed. */
  guardsFile?: boolean;
  /** failureReport() has reports. */
  reportsFailures?: boolean;
}
export interface RunOptions {
  /** Ends the run, which then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Tensors whose memory the outputs are written to, or null; made by Tensor.zeros(), or shared. */
  outputs?: ReadonlyArray<Tensor | null | undefined>;
}
export type Input = Tensor | number | bigint | boolean | string | null | undefined;
export type Output = Tensor | number | bigint | boolean | string | null;

/** Which values a trace has, and its room in bytes. */
export interface TraceOptions {
  values?: 'times' | 'outputs' | 'all';
  bytes?: number | bigint;
  valueBytes?: number | bigint;
}

/** A program that is open. Its calls are done one after the other, in the order they are made in. */
export class Module extends Handle {
  /** A path, a file URL, or the program's bytes, which are copied. */
  static open(source: Path | Bytes, options?: ModuleOptions): Promise<Module>;
  get methods(): string[];
  get threads(): number;
  describe(method?: string): MethodInfo;
  forward(...inputs: Input[]): Promise<Output[]>;
  run(method: string, inputs: readonly Input[], options?: RunOptions): Promise<Output[]>;
  load(method?: string): Promise<void>;
  unload(method?: string): Promise<void>;
  memory(): Promise<{ inUse: number; resident: number }>;
  clone(): Promise<Module>;
  fork(): Promise<Module>;
  snapshot(): Promise<Uint8Array>;
  restore(snapshot: Bytes): Promise<void>;
  resetState(): Promise<void>;
  state(): Promise<Array<{ name: string; method: string; tensor: Tensor }>>;
  seed(seed: number | bigint): Promise<void>;
  startTrace(options?: TraceOptions): Promise<void>;
  stopTrace(): Promise<void>;
  saveTrace(file: Path): Promise<void>;
  failureReport(): Promise<Uint8Array | null>;
}

export interface LanguageModelOptions {
  threads?: number;
  /** Bytes, without the cache. */
  memoryLimit?: number | bigint;
  dataPath?: Path;
  /** Shared libraries with backends, and with kernels for operators of your own. */
  backends?: readonly Path[];
  kernels?: readonly Path[];
  readsFile?: boolean;
  guardsFile?: boolean;
  /** The type of keys and values. */
  cache?: 'automatic' | 'float32' | 'float16' | 'int8';
  /** That are computed at once. */
  maxTexts?: number;
  /** Bytes of keys and values. */
  cacheLimit?: number | bigint;
  prefillRows?: number | bigint;
  /** In place of the program's. */
  chatTemplate?: string;
}
export interface LanguageModelInfo {
  /** Of keys and values; null for an encoder, which has none. */
  cacheDtype: string | null;
  vocabulary: number;
  context: number;
  /** Elements of an embedding; 0: it makes none. */
  hidden: number;
  pageBytes: number;
  cacheBytes: number;
  cacheLimit: number;
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
}

export type Finish = 'stop' | 'length' | 'context' | 'cancelled' | 'failed';
export interface Sampling {
  /** Texts for the prompt; 1 in a session. */
  n?: number;
  /** Of output; 0: as many as the context has room for. */
  maxTokens?: number | bigint;
  seed?: number | bigint;
  /** 0: always the most probable token. */
  temperature?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  topK?: number;
  repetitionPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** The model's own end tokens do not end the output. */
  ignoresEnd?: boolean;
  /** The output begins with the prompt. */
  echoes?: boolean;
  /** The text has the special tokens. */
  hasSpecial?: boolean;
  /** In a full context, half of what follows `keep` tokens is dropped. */
  shifts?: boolean;
  keep?: number | bigint;
  /** The most tokens that speculation proposes; 0: none. */
  guesses?: number;
  /** Pieces have log probabilities. */
  logprobs?: boolean;
}
export interface GenerateOptions extends Sampling {
  /** Texts that end the output, which are not part of it. */
  stop?: readonly string[];
  stopTokens?: Tokens;
  grammar?: Grammar | null;
  adapter?: Adapter | null;
  /** Ends the texts; the call then rejects with the signal's reason. */
  signal?: AbortSignal;
}
export type Tokens = Int32Array | readonly number[];
export type Message = { role: string; content: unknown; [name: string]: unknown };
export type Prompt = string | Tokens | readonly Message[];

/** What is new of a text. */
export interface Piece {
  /** Which of the n texts. */
  choice: number;
  text: string;
  tokens: Int32Array;
  logprobs?: Float32Array;
  /** null: it goes on. */
  finish: Finish | null;
}
export interface Choice {
  text: string;
  tokens: number[];
  logprobs: number[] | null;
  finish: Finish | null;
}
export interface Statistics {
  finish: Finish | null;
  promptTokens: number;
  /** Of the prompt, that were in the cache. */
  reusedTokens: number;
  outputTokens: number;
  guessedTokens: number;
  acceptedTokens: number;
  recomputedTokens: number;
  steps: number;
  /** Milliseconds after the request. */
  startedMs: number;
  firstTokenMs: number;
  finishedMs: number;
}
/** The first text, all texts, and counts. */
export interface Generated extends Choice {
  choices: Choice[];
  statistics: Statistics;
}
/** Pieces for `for await`; leaving the loop ends the generation. */
export interface TextStream extends AsyncIterableIterator<Piece> {
  /** null until the texts have ended. */
  readonly statistics: Statistics | null;
}

/** What a text may be: made by LanguageModel.grammar(). */
export class Grammar extends Handle {
  private readonly isGrammar: true;
}
/** An adapter (LoRA): made by LanguageModel.adapter(). */
export class Adapter extends Handle {
  private readonly isAdapter: true;
}

/** A language model. Any number of calls may be under way; their texts are computed together. */
export class LanguageModel extends Handle {
  /** A path, a file URL, or the program's bytes, which are copied. */
  static open(source: Path | Bytes, options?: LanguageModelOptions): Promise<LanguageModel>;
  get info(): LanguageModelInfo;
  get defaults(): Required<Sampling>;
  encode(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Int32Array;
  decode(tokens: Tokens, options?: { skipSpecial?: boolean }): string;
  encodeChat(
    messages: readonly Message[],
    options?: { addGenerationPrompt?: boolean; tools?: unknown; [name: string]: unknown },
  ): Int32Array;
  tokensOf(prompt: Prompt): Tokens;
  generate(prompt: Prompt, options?: GenerateOptions): Promise<Generated>;
  stream(prompt: Prompt, options?: GenerateOptions): TextStream;
  embed(
    texts: readonly string[],
    options?: { normalizes?: boolean; truncates?: boolean },
  ): Promise<Float32Array[]>;
  startTrace(options?: TraceOptions): Promise<void>;
  stopTrace(): Promise<void>;
  saveTrace(file: Path): Promise<void>;
  session(): Promise<Session>;
  restore(file: Path, options?: { adapter?: Adapter | null }): Promise<Session>;
  grammar(of: { regex: string } | { jsonSchema: object | string | boolean }): Promise<Grammar>;
  adapter(file: Path): Promise<Adapter>;
}

/** A text that is kept, with its cache. Its calls are done one after the other. */
export class Session extends Handle {
  get model(): LanguageModel;
  generate(prompt: Prompt, options?: GenerateOptions): Promise<Generated>;
  stream(prompt: Prompt, options?: GenerateOptions): TextStream;
  fork(): Promise<Session>;
  rewind(count: number | bigint): Promise<void>;
  tokens(): Promise<Int32Array>;
  setTokens(tokens: Tokens): Promise<void>;
  save(file: Path): Promise<void>;
}
