// Compiled nowhere here: no Swift compiler was at hand. A test holds its C names to rushlight.h.
//
// What all of Rushlight for Swift has in common: errors, handles, strings of the C interface.
import CRushlight
import Foundation

/// What a call failed with.
public struct RushlightError: Error, CustomStringConvertible {
  /// One of rushlight.h, with ExecuTorch's numbers where it has one.
  public let code: Int32
  /// What came, what is allowed and what to do.
  public let message: String
  /// Of the method, that failed.
  public let instruction: UInt32?
  public var description: String { message }
}

/// Calls a function of the C interface, whose last argument is an rl_error.
func check(_ call: (UnsafeMutablePointer<rl_error>) -> rl_status) throws {
  var error = rl_error()
  error.size = UInt32(MemoryLayout<rl_error>.stride)
  error.instruction = UInt32.max
  let code = call(&error)
  guard code != Int32(RL_OK) else { return }
  let message = withUnsafeBytes(of: &error.text) { bytes in
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }
  let instruction = error.instruction == UInt32.max ? nil : error.instruction
  throw RushlightError(code: code, message: message, instruction: instruction)
}

/// A text that the library lends.
func lentString(_ text: rl_text_v1) -> String {
  guard let data = text.data else { return "" }
  return String(decoding: UnsafeRawBufferPointer(start: data, count: text.size), as: UTF8.self)
}

/// Something that is open until close(), or until nothing refers to it.
public class Handle {
  private let lock = NSLock()
  private var pointer: OpaquePointer?
  private let closeIt: (OpaquePointer?, UnsafeMutablePointer<rl_error>) -> rl_status

  init(
    _ pointer: OpaquePointer?,
    close: @escaping (OpaquePointer?, UnsafeMutablePointer<rl_error>) -> rl_status
  ) {
    self.pointer = pointer
    self.closeIt = close
  }

  deinit { try? close() }

  /// The handle; the library refuses one that was closed meanwhile.
  func opened() throws -> OpaquePointer {
    lock.lock()
    defer { lock.unlock() }
    guard let pointer = pointer else {
      throw RushlightError(
        code: Int32(RL_INVALID_STATE), message: "the \(type(of: self)) is closed", instruction: nil)
    }
    return pointer
  }

  /// Closes it; closing it again does nothing. It fails while a call uses it.
  public func close() throws {
    lock.lock()
    defer { lock.unlock() }
    guard let pointer = pointer else { return }
    try check { closeIt(pointer, $0) }
    self.pointer = nil
  }
}

/// Strings as the C interface takes them, for the time of a call.
func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) throws -> Result
) rethrows -> Result {
  let copies = strings.map { strdup($0) }
  defer { copies.forEach { free($0) } }
  let pointers = copies.map { UnsafePointer<CChar>($0) }
  return try pointers.withUnsafeBufferPointer { try body($0.baseAddress) }
}
