// What calls fail with, and how the library is called.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Rushlight {
  /// <summary>Why a call failed, by the numbers of the C interface: ExecuTorch's where it has
  /// one.</summary>
  public enum ErrorCode {
    Internal = 0x01,
    InvalidState = 0x02,
    EndOfMethod = 0x03,
    AlreadyLoaded = 0x04,
    NotSupported = 0x10,
    NotImplemented = 0x11,
    InvalidArgument = 0x12,
    InvalidType = 0x13,
    OperatorMissing = 0x14,
    RegistrationExceedingMaxKernels = 0x15,
    RegistrationAlreadyRegistered = 0x16,
    NotFound = 0x20,
    MemoryAllocationFailed = 0x21,
    AccessFailed = 0x22,
    InvalidProgram = 0x23,
    InvalidExternalData = 0x24,
    OutOfResources = 0x25,
    DelegateInvalidCompatibility = 0x30,
    DelegateMemoryAllocationFailed = 0x31,
    DelegateInvalidHandle = 0x32,
    Cancelled = 0x80
  }

  /// <summary>What a call failed with. The message names the input, the operator or the file, what
  /// came, and what is allowed.</summary>
  public sealed class RushlightException : Exception {
    /// <summary>The kind of failure.</summary>
    public ErrorCode Code { get; }

    /// <summary>The instruction of the method that failed; null: none.</summary>
    public uint? Instruction { get; }

    /// <summary>The delegate of the method that failed; null: none.</summary>
    public uint? Delegate { get; }

    internal RushlightException(ErrorCode code, string message) : base(message) {
      Code = code;
    }

    internal RushlightException(int code, rl_error error) : base(TextOf(error)) {
      Code = (ErrorCode)code;
      if (error.instruction != Native.NoIndex) Instruction = error.instruction;
      if (error.@delegate != Native.NoIndex) Delegate = error.@delegate;
    }

    private static string TextOf(rl_error error) {
      int length = Array.IndexOf(error.text, (byte)0);
      return Encoding.UTF8.GetString(error.text, 0, length < 0 ? error.text.Length : length);
    }
  }

  internal delegate int NativeCall(ref rl_error error);

  /// <summary>Calls of the library, and texts for it.</summary>
  internal static class Call {
    /// <summary>Calls a function whose last argument is an rl_error, which becomes an
    /// exception.</summary>
    internal static void Check(NativeCall call) {
      var error = new rl_error {
        size = (uint)Marshal.SizeOf(typeof(rl_error)),
        instruction = Native.NoIndex,
        @delegate = Native.NoIndex,
        text = new byte[1024]
      };
      int code = call(ref error);
      if (code != Native.Ok) throw new RushlightException(code, error);
    }

    internal static uint SizeOf<T>() => (uint)Marshal.SizeOf(typeof(T));

    internal static RushlightException Wrong(string message) =>
        new RushlightException(ErrorCode.InvalidArgument, message);

    /// <summary>UTF-8 with a NUL at its end, as the library takes names and paths; null for
    /// null.</summary>
    internal static byte[] Text(string what, string text) {
      if (text == null) return null;
      int nul = text.IndexOf('\0');
      if (nul >= 0) throw Wrong(what + ": character " + nul + " is a NUL, which ends texts");
      return Encoding.UTF8.GetBytes(text + "\0");
    }

    internal static byte[] Required(string what, string text) {
      if (text == null) throw new ArgumentNullException(what);
      return Text(what, text);
    }

    internal static byte[] Copy(IntPtr data, UIntPtr size) {
      var bytes = new byte[checked((int)size.ToUInt64())];
      if (bytes.Length > 0) Marshal.Copy(data, bytes, 0, bytes.Length);
      return bytes;
    }

    internal static string Copy(rl_text_v1 text) =>
        Encoding.UTF8.GetString(Copy(text.data, text.size));

    /// <summary>A constant of the library.</summary>
    internal static string Constant(IntPtr text) => Marshal.PtrToStringAnsi(text);
  }
}
