// Compiled nowhere here: no Swift compiler was at hand. A test holds its C names to rushlight.h.
//
// Modules. One is used by one thread at a time, except for cancel(); clone() makes another for
// another thread.
import CRushlight
import Foundation

/// A program in memory, which stays until the last module on it is closed.
private final class ProgramBytes {
  let bytes: UnsafeMutableRawBufferPointer

  init(_ data: Data) {
    bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(data.count, 1), alignment: 64)
    data.copyBytes(to: bytes)
  }

  deinit { bytes.deallocate() }
}

/// A program that is open.
public final class Module: Handle {
  private let program: ProgramBytes?

  private init(_ pointer: OpaquePointer?, program: ProgramBytes?) {
    self.program = program
    super.init(pointer) { rl_module_close($0, $1) }
  }

  /// Opens a file. `threads` 0: one for each core; `memoryLimit` 0: none. `kernels` and `backends`
  /// are paths of shared libraries.
  public static func open(
    path: String, threads: UInt32 = 0, memoryLimit: UInt64 = 0, kernels: [String] = [],
    backends: [String] = []
  ) throws -> Module {
    var options = rl_module_options()
    options.size = UInt32(MemoryLayout<rl_module_options>.stride)
    options.threads = threads
    options.memory_limit = memoryLimit
    options.n_kernel_libraries = UInt32(kernels.count)
    options.n_backend_libraries = UInt32(backends.count)
    var module: OpaquePointer?
    try withCStrings(kernels) { kernelPaths in
      try withCStrings(backends) { backendPaths in
        options.kernel_libraries = kernelPaths
        options.backend_libraries = backendPaths
        try check { rl_module_open(path, &options, &module, $0) }
      }
    }
    return Module(module, program: nil)
  }

  /// Opens a program in memory, which is copied.
  public static func open(program: Data) throws -> Module {
    let copy = ProgramBytes(program)
    var module: OpaquePointer?
    try check { rl_module_open_memory(copy.bytes.baseAddress, program.count, nil, &module, $0) }
    return Module(module, program: copy)
  }

  /// The names of the methods.
  public func methods() throws -> [String] {
    let module = try opened()
    var info = rl_module_info()
    info.size = UInt32(MemoryLayout<rl_module_info>.stride)
    try check { rl_module_describe(module, &info, $0) }
    return try (0..<info.n_methods).map { index in
      var name = rl_text_v1()
      try check { rl_module_method_name(module, index, &name, $0) }
      return lentString(name)
    }
  }

  private func method(_ name: String) throws -> rl_method_info {
    let module = try opened()
    var info = rl_method_info()
    info.size = UInt32(MemoryLayout<rl_method_info>.stride)
    try check { rl_module_describe_method(module, name, &info, $0) }
    return info
  }

  /// The inputs of a method.
  public func inputs(of name: String = "forward") throws -> [ValueInfo] {
    let module = try opened()
    return try (0..<method(name).n_inputs).map { index in
      var info = rl_value_info()
      info.size = UInt32(MemoryLayout<rl_value_info>.stride)
      try check { rl_module_describe_input(module, name, index, &info, $0) }
      return ValueInfo(info)
    }
  }

  /// The outputs of a method.
  public func outputs(of name: String = "forward") throws -> [ValueInfo] {
    let module = try opened()
    return try (0..<method(name).n_outputs).map { index in
      var info = rl_value_info()
      info.size = UInt32(MemoryLayout<rl_value_info>.stride)
      try check { rl_module_describe_output(module, name, index, &info, $0) }
      return ValueInfo(info)
    }
  }

  /// What the inputs of a method have to do with each other, as text.
  public func relations(of name: String = "forward") throws -> [String] {
    let module = try opened()
    var count: UInt32 = 0
    try check { rl_module_relation_count(module, name, &count, $0) }
    return try (0..<count).map { index in
      var text = rl_text_v1()
      try check { rl_module_relation(module, name, index, &text, $0) }
      return lentString(text)
    }
  }

  /// Runs a method. Tensors are read where they lie; outputs are copies.
  public func run(_ name: String = "forward", _ inputs: [Value]) throws -> [Value] {
    let module = try opened()
    let count = try method(name).n_outputs
    var empty = rl_value_v1()
    empty.size = UInt32(MemoryLayout<rl_value_v1>.stride)
    var outputs = [rl_value_v1](repeating: empty, count: Int(count))
    try withCValues(inputs) { values in
      try check {
        rl_module_run(module, name, values, UInt32(inputs.count), &outputs, count, $0)
      }
    }
    return try outputs.map { try Value($0) }
  }

  // The inputs as C has them, for the time of a call.
  private func withCValues<Result>(
    _ inputs: [Value], _ body: (UnsafePointer<rl_value_v1>?) throws -> Result
  ) rethrows -> Result {
    var kept: [UnsafeMutableRawPointer] = []
    defer { kept.forEach { free($0) } }
    let values = inputs.map { input -> rl_value_v1 in
      var value = rl_value_v1()
      value.size = UInt32(MemoryLayout<rl_value_v1>.stride)
      switch input {
      case .tensor(let tensor):
        let memory = malloc(max(tensor.sizes.count, 1) * MemoryLayout<Int32>.stride)!
        kept.append(memory)
        let sizes = memory.bindMemory(to: Int32.self, capacity: max(tensor.sizes.count, 1))
        for (k, size) in tensor.sizes.enumerated() { sizes[k] = size }
        value.kind = UInt32(RL_TENSOR)
        value.data = tensor.bytes.baseAddress
        value.nbytes = tensor.count * tensor.dtype.bytes
        value.dtype = tensor.dtype.rawValue
        value.sizes = UnsafePointer(sizes)
        value.rank = UInt32(tensor.sizes.count)
      case .int(let number):
        value.kind = UInt32(RL_INT)
        value.i = number
      case .double(let number):
        value.kind = UInt32(RL_DOUBLE)
        value.d = number
      case .bool(let flag):
        value.kind = UInt32(RL_BOOL)
        value.i = flag ? 1 : 0
      case .string(let text):
        let copy = strdup(text)!
        kept.append(UnsafeMutableRawPointer(copy))
        value.kind = UInt32(RL_STRING)
        value.text = rl_text_v1(data: UnsafePointer(copy), size: text.utf8.count)
      case .none:
        value.kind = UInt32(RL_NONE)
      }
      return value
    }
    return try withExtendedLifetime(inputs) {
      try values.withUnsafeBufferPointer { try body($0.baseAddress) }
    }
  }

  /// Writes an output into a tensor's memory from now on; nil: into the module's again. The tensor
  /// must live until then.
  public func setOutput(_ tensor: Tensor?, of name: String = "forward", at index: UInt32) throws {
    let module = try opened()
    let bytes = tensor.map { $0.count * $0.dtype.bytes } ?? 0
    try check {
      rl_module_set_output(module, name, index, tensor?.bytes.baseAddress, bytes, $0)
    }
  }

  /// Ends the run that another thread is in, which fails with the code 0x80.
  public func cancel() throws {
    let module = try opened()
    try check { rl_module_cancel(module, $0) }
  }

  /// A module on the same program, with memory and state of its own.
  public func clone() throws -> Module {
    let module = try opened()
    var copy: OpaquePointer?
    try check { rl_module_clone(module, &copy, $0) }
    return Module(copy, program: program)
  }

  /// A clone with the current state.
  public func fork() throws -> Module {
    let module = try opened()
    var copy: OpaquePointer?
    try check { rl_module_fork(module, &copy, $0) }
    return Module(copy, program: program)
  }

  /// All state of the methods that are loaded, for restore().
  public func snapshot() throws -> Data {
    let module = try opened()
    var count = 0
    try check { rl_module_snapshot(module, nil, 0, &count, $0) }
    var bytes = Data(count: count)
    try bytes.withUnsafeMutableBytes { to in
      try check { rl_module_snapshot(module, to.baseAddress, count, &count, $0) }
    }
    return bytes
  }

  /// Puts the state of a snapshot back.
  public func restore(_ snapshot: Data) throws {
    let module = try opened()
    try snapshot.withUnsafeBytes { from in
      try check { rl_module_restore(module, from.baseAddress, from.count, $0) }
    }
  }

  /// The state has its initial content again.
  public func resetState() throws {
    let module = try opened()
    try check { rl_module_reset_state(module, $0) }
  }

  /// Random operators draw as after torch.manual_seed(seed).
  public func seed(_ seed: UInt64) throws {
    let module = try opened()
    try check { rl_module_seed(module, seed, $0) }
  }

  /// Records loads and runs from now on.
  public func startTrace() throws {
    let module = try opened()
    try check { rl_module_trace_start(module, nil, $0) }
  }

  /// Records no more.
  public func stopTrace() throws {
    let module = try opened()
    try check { rl_module_trace_stop(module, $0) }
  }

  /// Writes the trace to a file (ETDump).
  public func saveTrace(path: String) throws {
    let module = try opened()
    try check { rl_module_trace_save(module, path, $0) }
  }
}
