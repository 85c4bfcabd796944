// How modules and language models are traced.
using System;
using System.IO;
using System.Runtime.ExceptionServices;

namespace Rushlight {
  /// <summary>What is recorded of values while a module is traced.</summary>
  public enum TraceValues { None = 0, Outputs = 1, All = 2 }

  internal delegate int Writing(rl_write_fn write, ref rl_error error);

  internal static class Tracing {
    internal static rl_trace_options Options(TraceValues values, ulong bytes, ulong valueBytes) {
      return new rl_trace_options {
        size = Call.SizeOf<rl_trace_options>(),
        values = (uint)values,
        bytes = bytes,
        value_bytes = valueBytes
      };
    }

    /// <summary>Writes what a function of the library gives piece by piece.</summary>
    internal static void Write(Stream to, Action<NativeCall> check, Writing call) {
      if (to == null) throw new ArgumentNullException(nameof(to));
      ExceptionDispatchInfo thrown = null;
      rl_write_fn write = (userdata, data, bytes) => {
        try {
          byte[] piece = Call.Copy(data, bytes);
          to.Write(piece, 0, piece.Length);
          return 0;
        } catch (Exception error) {
          thrown = ExceptionDispatchInfo.Capture(error);
          return 1;
        }
      };
      try {
        check((ref rl_error error) => call(write, ref error));
      } catch (RushlightException) when (thrown != null) {
        thrown.Throw();
      }
      GC.KeepAlive(write);
    }
  }
}
