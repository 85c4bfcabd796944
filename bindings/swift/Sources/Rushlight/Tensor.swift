// Compiled nowhere here: no Swift compiler was at hand. A test holds its C names to rushlight.h.
//
// Tensors, values, and what methods say of them.
import CRushlight

/// The type of a tensor's elements, with the number that the C interface has for it.
public enum DType: Int32 {
  case uint8 = 0
  case int8 = 1
  case int16 = 2
  case int32 = 3
  case int64 = 4
  case float16 = 5
  case float32 = 6
  case float64 = 7
  case complex64 = 9
  case complex128 = 10
  case bool = 11
  case bfloat16 = 15
  case uint16 = 27
  case uint32 = 28
  case uint64 = 29

  /// Bytes of an element.
  public var bytes: Int {
    switch self {
    case .uint8, .int8, .bool: return 1
    case .int16, .float16, .bfloat16, .uint16: return 2
    case .int32, .float32, .uint32: return 4
    case .int64, .float64, .complex64, .uint64: return 8
    case .complex128: return 16
    }
  }
}

/// Elements of one dtype in row-major order, in memory of its own.
public final class Tensor {
  public let dtype: DType
  public let sizes: [Int32]
  /// All bytes, aligned for every dtype; runs read and write them without a copy.
  public let bytes: UnsafeMutableRawBufferPointer

  /// A tensor of zeros.
  public init(_ dtype: DType, _ sizes: [Int32]) throws {
    var count = dtype.bytes
    for size in sizes {
      let (product, overflows) = count.multipliedReportingOverflow(by: Int(size))
      guard size >= 0, !overflows else {
        throw RushlightError(
          code: Int32(RL_INVALID_ARGUMENT),
          message: "the sizes \(sizes) cannot be those of a tensor", instruction: nil)
      }
      count = product
    }
    self.dtype = dtype
    self.sizes = sizes
    bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 64)
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
  }

  /// A tensor of these elements, whose type must have the size of the dtype's.
  public convenience init<Element>(_ elements: [Element], _ dtype: DType, _ sizes: [Int32]) throws {
    try self.init(dtype, sizes)
    try elements.withUnsafeBytes { source in
      guard source.count == count * dtype.bytes else {
        throw RushlightError(
          code: Int32(RL_INVALID_ARGUMENT),
          message: "\(source.count) bytes for the sizes \(sizes) of \(dtype)", instruction: nil)
      }
      UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(source.count)).copyMemory(from: source)
    }
  }

  deinit { bytes.deallocate() }

  /// The number of elements.
  public var count: Int { sizes.reduce(1) { $0 * Int($1) } }

  /// The elements as an array of a type of the dtype's size.
  public func elements<Element>(as type: Element.Type) throws -> [Element] {
    guard MemoryLayout<Element>.stride == dtype.bytes else {
      throw RushlightError(
        code: Int32(RL_INVALID_ARGUMENT), message: "\(type) is no type for \(dtype)",
        instruction: nil)
    }
    let used = UnsafeRawBufferPointer(rebasing: bytes.prefix(count * dtype.bytes))
    return Array(used.bindMemory(to: type))
  }

  // The elements of an output, which may have any strides.
  convenience init(copying value: rl_value_v1) throws {
    guard let dtype = DType(rawValue: value.dtype) else {
      throw RushlightError(
        code: Int32(RL_NOT_SUPPORTED), message: "an output has the dtype \(value.dtype)",
        instruction: nil)
    }
    let rank = Int(value.rank)
    try self.init(dtype, Array(UnsafeBufferPointer(start: value.sizes, count: rank)))
    let strides = Array(UnsafeBufferPointer(start: value.strides, count: rank))
    var at = [Int32](repeating: 0, count: rank)
    var from = 0
    for index in 0..<count {
      (bytes.baseAddress! + index * dtype.bytes).copyMemory(
        from: value.data! + from * dtype.bytes, byteCount: dtype.bytes)
      for k in stride(from: rank - 1, through: 0, by: -1) {
        from += Int(strides[k])
        at[k] += 1
        if at[k] < sizes[k] { break }
        from -= Int(strides[k]) * Int(sizes[k])
        at[k] = 0
      }
    }
  }
}

/// An input or an output.
public enum Value {
  case tensor(Tensor)
  case int(Int64)
  case double(Double)
  case bool(Bool)
  case string(String)
  case none

  init(_ value: rl_value_v1) throws {
    switch Int(value.kind) {
    case Int(RL_TENSOR): self = .tensor(try Tensor(copying: value))
    case Int(RL_INT): self = .int(value.i)
    case Int(RL_DOUBLE): self = .double(value.d)
    case Int(RL_BOOL): self = .bool(value.i != 0)
    case Int(RL_STRING): self = .string(lentString(value.text))
    default: self = .none
    }
  }
}

/// What a method takes or gives.
public struct ValueInfo {
  /// Of an input, such as "x"; empty if the program has none.
  public let name: String
  /// Of a tensor; otherwise nil.
  public let dtype: DType?
  public let minSizes: [Int32]
  /// Int32.max: no bound.
  public let maxSizes: [Int32]

  init(_ given: rl_value_info) {
    var info = given
    let rank = Int(info.rank)
    name = lentString(info.name)
    dtype = info.kind == UInt32(RL_TENSOR) ? DType(rawValue: info.dtype) : nil
    minSizes = withUnsafeBytes(of: &info.min_sizes) {
      Array($0.bindMemory(to: Int32.self).prefix(rank))
    }
    maxSizes = withUnsafeBytes(of: &info.max_sizes) {
      Array($0.bindMemory(to: Int32.self).prefix(rank))
    }
  }
}
