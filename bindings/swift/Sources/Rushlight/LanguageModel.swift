// Compiled nowhere here: no Swift compiler was at hand. A test holds its C names to rushlight.h.
//
// Language models and sessions. Any number of threads may use a model, and their texts are computed
// together; a session is used by one thread at a time, except for cancel().
import CRushlight
import Foundation

/// What is new of a text.
public struct Piece {
  /// Which of the n texts.
  public let choice: Int
  public let text: String
  public let tokens: [Int32]
}

/// How texts are generated; LanguageModel.defaults() has what the model's makers say.
public struct GenerateOptions {
  /// Texts for the prompt; 1 in a session.
  public var n: UInt32
  /// Of output; 0: as many as the context has room for.
  public var maxTokens: UInt64
  public var seed: UInt64
  /// 0: always the most probable token.
  public var temperature: Float
  public var topP: Float
  public var minP: Float
  public var topK: UInt32
  public var repetitionPenalty: Float
  /// The model's own end tokens do not end the output.
  public var ignoresEnd: Bool
  /// Texts that end the output, which are not part of it.
  public var stop: [String] = []
  /// What the text may be.
  public var grammar: Grammar?
  /// What is added to the weights; nil: the model alone, or the session's own adapter.
  public var adapter: Adapter?

  init(_ options: rl_generate_options) {
    n = options.n
    maxTokens = options.max_tokens
    seed = options.seed
    temperature = options.temperature
    topP = options.top_p
    minP = options.min_p
    topK = options.top_k
    repetitionPenalty = options.repetition_penalty
    ignoresEnd = options.ignores_end != 0
  }

  func apply(to options: inout rl_generate_options) throws {
    options.n = n
    options.max_tokens = maxTokens
    options.seed = seed
    options.temperature = temperature
    options.top_p = topP
    options.min_p = minP
    options.top_k = topK
    options.repetition_penalty = repetitionPenalty
    options.ignores_end = ignoresEnd ? 1 : 0
    options.grammar = try grammar?.opened()
    options.adapter = try adapter?.opened()
  }
}

/// What a text may be.
public final class Grammar: Handle {
  init(_ pointer: OpaquePointer?) {
    super.init(pointer) { rl_grammar_close($0, $1) }
  }
}

/// An adapter (LoRA) of a model.
public final class Adapter: Handle {
  init(_ pointer: OpaquePointer?) {
    super.init(pointer) { rl_adapter_close($0, $1) }
  }
}

/// How a language model is opened.
public struct LanguageModelOptions {
  /// The type of keys and values.
  public enum Cache: UInt32 {
    case automatic = 0
    case float32, float16, int8
  }

  /// For kernels; 0: one for each core.
  public var threads: UInt32 = 0
  /// Bytes without the cache; 0: no limit.
  public var memoryLimit: UInt64 = 0
  public var cache = Cache.automatic
  /// Bytes of the cache; 0: four texts as long as the context.
  public var cacheLimit: UInt64 = 0
  /// Texts that are computed at once; 0: 32.
  public var maxTexts: UInt32 = 0
  /// Paths of shared libraries with kernels of operators of your own.
  public var kernels: [String] = []
  /// Paths of shared libraries with backends.
  public var backends: [String] = []

  public init() {}
}

/// Hands pieces to a closure; false ends the texts.
private final class Listener {
  let take: (Piece) -> Bool
  init(_ take: @escaping (Piece) -> Bool) { self.take = take }
}

private func tell(
  _ userdata: UnsafeMutableRawPointer?, _ piece: UnsafePointer<rl_piece>?
) -> Int32 {
  guard let userdata = userdata, let piece = piece?.pointee else { return 1 }
  guard piece.n_tokens > 0 || piece.text.size > 0 else { return 0 }
  let listener = Unmanaged<Listener>.fromOpaque(userdata).takeUnretainedValue()
  let tokens = Array(UnsafeBufferPointer(start: piece.tokens, count: Int(piece.n_tokens)))
  let told = Piece(choice: Int(piece.choice), text: lentString(piece.text), tokens: tokens)
  return listener.take(told) ? 0 : 1
}

/// A string's UTF-8 as an rl_text_v1, for the time of a call.
private func withText<Result>(
  _ text: String, _ body: (rl_text_v1) throws -> Result
) rethrows -> Result {
  var copy = text
  return try copy.withUTF8 { bytes in
    try bytes.withMemoryRebound(to: CChar.self) {
      try body(rl_text_v1(data: $0.baseAddress, size: $0.count))
    }
  }
}

/// The items that a function counts first, and then writes.
private func items(
  _ call: (
    UnsafeMutablePointer<Int32>?, Int, UnsafeMutablePointer<Int>, UnsafeMutablePointer<rl_error>
  ) -> rl_status
) throws -> [Int32] {
  var count = 0
  try check { call(nil, 0, &count, $0) }
  var tokens = [Int32](repeating: 0, count: count)
  try tokens.withUnsafeMutableBufferPointer { to in
    try check { call(to.baseAddress, to.count, &count, $0) }
  }
  return tokens
}

private typealias Generate = (
  UnsafePointer<Int32>?, Int, UnsafePointer<rl_generate_options>?, @escaping rl_piece_fn,
  UnsafeMutableRawPointer?, UnsafeMutablePointer<rl_error>
) -> rl_status

/// A language model.
public final class LanguageModel: Handle {
  private init(_ pointer: OpaquePointer?) {
    super.init(pointer) { rl_llm_close($0, $1) }
  }

  /// Opens a file.
  public static func open(
    path: String, options wanted: LanguageModelOptions = LanguageModelOptions()
  ) throws -> LanguageModel {
    var options = rl_llm_options()
    options.size = UInt32(MemoryLayout<rl_llm_options>.stride)
    options.threads = wanted.threads
    options.memory_limit = wanted.memoryLimit
    options.cache = wanted.cache.rawValue
    options.cache_limit = wanted.cacheLimit
    options.max_texts = wanted.maxTexts
    options.n_kernel_libraries = UInt32(wanted.kernels.count)
    options.n_backend_libraries = UInt32(wanted.backends.count)
    var model: OpaquePointer?
    try withCStrings(wanted.kernels) { kernelPaths in
      try withCStrings(wanted.backends) { backendPaths in
        options.kernel_libraries = kernelPaths
        options.backend_libraries = backendPaths
        try check { rl_llm_open(path, &options, &model, $0) }
      }
    }
    return LanguageModel(model)
  }

  /// The tokens of a text, with those that surround each text.
  public func encode(_ text: String) throws -> [Int32] {
    let model = try opened()
    return try withText(text) { text in
      try items { rl_llm_encode(model, text, UInt32(RL_ADD_SPECIAL), $0, $1, $2, $3) }
    }
  }

  /// The tokens of a conversation: JSON with "messages" and what else the template reads.
  public func encodeChat(json: String) throws -> [Int32] {
    let model = try opened()
    return try withText(json) { text in
      try items { rl_llm_encode_chat(model, text, $0, $1, $2, $3) }
    }
  }

  /// The text of tokens, without special ones.
  public func decode(_ tokens: [Int32]) throws -> String {
    let model = try opened()
    let flags = UInt32(RL_SKIP_SPECIAL)
    var count = 0
    try check { rl_llm_decode(model, tokens, tokens.count, flags, nil, 0, &count, $0) }
    var text = [CChar](repeating: 0, count: max(count, 1))
    try check { rl_llm_decode(model, tokens, tokens.count, flags, &text, count, &count, $0) }
    return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// What the model's makers recommend.
  public func defaults() throws -> GenerateOptions {
    GenerateOptions(try cDefaults())
  }

  fileprivate func cDefaults() throws -> rl_generate_options {
    let model = try opened()
    var options = rl_generate_options()
    options.size = UInt32(MemoryLayout<rl_generate_options>.stride)
    try check { rl_llm_default_options(model, &options, $0) }
    return options
  }

  /// What a text may be, by a regular expression.
  public func grammar(regex: String) throws -> Grammar {
    let model = try opened()
    var grammar: OpaquePointer?
    try withText(regex) { text in
      try check { rl_grammar_from_regex(model, text, &grammar, $0) }
    }
    return Grammar(grammar)
  }

  /// What a text may be, by a JSON schema.
  public func grammar(jsonSchema: String) throws -> Grammar {
    let model = try opened()
    var grammar: OpaquePointer?
    try withText(jsonSchema) { text in
      try check { rl_grammar_from_json_schema(model, text, &grammar, $0) }
    }
    return Grammar(grammar)
  }

  /// Opens an adapter of this model (`.ptd`).
  public func adapter(path: String) throws -> Adapter {
    let model = try opened()
    var adapter: OpaquePointer?
    try check { rl_adapter_open(model, path, &adapter, $0) }
    return Adapter(adapter)
  }

  /// Records the model's steps from now on.
  public func startTrace() throws {
    let model = try opened()
    try check { rl_llm_trace_start(model, nil, $0) }
  }

  /// Records no more, and keeps what was recorded.
  public func stopTrace() throws {
    let model = try opened()
    try check { rl_llm_trace_stop(model, $0) }
  }

  /// Writes the trace to a file (ETDump).
  public func saveTrace(path: String) throws {
    let model = try opened()
    try check { rl_llm_trace_save(model, path, $0) }
  }

  /// Generates texts after a prompt; `take` gets each piece, and ends the texts by false.
  public func generate(
    _ prompt: [Int32], _ options: GenerateOptions, _ take: @escaping (Piece) -> Bool
  ) throws {
    let model = try opened()
    try run(prompt, options, take) { tokens, count, options, write, userdata, error in
      rl_llm_generate(model, tokens, count, options, write, userdata, nil, error)
    }
  }

  fileprivate func run(
    _ prompt: [Int32], _ options: GenerateOptions, _ take: @escaping (Piece) -> Bool,
    _ generate: Generate
  ) throws {
    var all = try cDefaults()
    try options.apply(to: &all)
    let listener = Listener(take)
    try withCStrings(options.stop) { stops in
      let texts = options.stop.indices.map { index in
        rl_text_v1(data: stops![index], size: strlen(stops![index]!))
      }
      try texts.withUnsafeBufferPointer { texts in
        all.stop = texts.baseAddress
        all.n_stop = UInt32(texts.count)
        let userdata = Unmanaged.passUnretained(listener).toOpaque()
        try withExtendedLifetime(listener) {
          try check { generate(prompt, prompt.count, &all, tell, userdata, $0) }
        }
      }
    }
  }

  /// The vector of a text, of the length 1.
  public func embed(_ text: String) throws -> [Float] {
    let model = try opened()
    var info = rl_llm_info()
    info.size = UInt32(MemoryLayout<rl_llm_info>.stride)
    try check { rl_llm_describe(model, &info, $0) }
    var vector = [Float](repeating: 0, count: Int(info.hidden))
    try withText(text) { text in
      var texts = text
      try check { rl_llm_embed(model, &texts, 1, 1, 0, &vector, Int(info.hidden), $0) }
    }
    return vector
  }

  /// A session without tokens.
  public func session() throws -> Session {
    let model = try opened()
    var session: OpaquePointer?
    try check { rl_session_open(model, &session, $0) }
    return Session(session, of: self)
  }

  /// A session from a file of Session.save(), with the adapter that it had.
  public func restore(path: String, adapter: Adapter? = nil) throws -> Session {
    let model = try opened()
    let with = try adapter?.opened()
    var session: OpaquePointer?
    try check { rl_session_restore(model, path, with, &session, $0) }
    return Session(session, of: self)
  }
}

/// A text that is kept, with its cache.
public final class Session: Handle {
  private let model: LanguageModel

  fileprivate init(_ pointer: OpaquePointer?, of model: LanguageModel) {
    self.model = model
    super.init(pointer) { rl_session_close($0, $1) }
  }

  /// Adds the prompt to the text, and then what is generated.
  public func generate(
    _ prompt: [Int32], _ options: GenerateOptions, _ take: @escaping (Piece) -> Bool
  ) throws {
    let session = try opened()
    try model.run(prompt, options, take) { tokens, count, options, write, userdata, error in
      rl_session_generate(session, tokens, count, options, write, userdata, nil, error)
    }
  }

  /// The same as a stream of pieces, from a thread of its own. Leaving the loop ends the text.
  public func stream(
    _ prompt: [Int32], _ options: GenerateOptions
  ) -> AsyncThrowingStream<Piece, Error> {
    AsyncThrowingStream { continuation in
      let thread = Thread {
        do {
          try self.generate(prompt, options) { piece in
            if case .terminated = continuation.yield(piece) { return false }
            return true
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      thread.start()
    }
  }

  /// Ends what another thread generates, at the next token.
  public func cancel() throws {
    let session = try opened()
    try check { rl_session_cancel(session, $0) }
  }

  /// A session with the same text, which shares its cache.
  public func fork() throws -> Session {
    let session = try opened()
    var copy: OpaquePointer?
    try check { rl_session_fork(session, &copy, $0) }
    return Session(copy, of: model)
  }

  /// Drops the last tokens.
  public func rewind(_ count: Int) throws {
    let session = try opened()
    try check { rl_session_rewind(session, count, $0) }
  }

  /// The tokens of the text.
  public func tokens() throws -> [Int32] {
    let session = try opened()
    return try items { rl_session_tokens(session, $0, $1, $2, $3) }
  }

  /// Writes the text and its cache to a file, for LanguageModel.restore().
  public func save(path: String) throws {
    let session = try opened()
    try check { rl_session_save(session, path, $0) }
  }
}
