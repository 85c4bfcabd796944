// What owns native objects. A handle is closed when nobody uses it any more: one that is disposed of
// during a call is closed when the call has returned.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Rushlight {
  /// <summary>A program in memory, which must not move until the last handle that uses it is
  /// closed.</summary>
  internal sealed class PinnedProgram {
    private GCHandle pin;
    private int users;

    internal PinnedProgram(byte[] bytes) {
      pin = GCHandle.Alloc(bytes, GCHandleType.Pinned);
    }

    internal IntPtr Address => pin.AddrOfPinnedObject();

    internal void Retain() {
      Interlocked.Increment(ref users);
    }

    internal void Release() {
      if (Interlocked.Decrement(ref users) == 0) pin.Free();
    }
  }

  internal abstract class NativeHandle : SafeHandle {
    internal readonly PinnedProgram Program; // null: none

    protected NativeHandle(IntPtr number, PinnedProgram program) : base(IntPtr.Zero, true) {
      Program = program;
      if (program != null) program.Retain();
      SetHandle(number);
    }

    public override bool IsInvalid => handle == IntPtr.Zero;

    protected override bool ReleaseHandle() {
      var error = new rl_error { size = Call.SizeOf<rl_error>(), text = new byte[1024] };
      bool isClosed = Close(handle, ref error) == Native.Ok;
      if (Program != null) Program.Release();
      return isClosed;
    }

    protected abstract int Close(IntPtr number, ref rl_error error);
  }

  internal sealed class ModuleHandle : NativeHandle {
    internal ModuleHandle(IntPtr number, PinnedProgram program) : base(number, program) {}

    protected override int Close(IntPtr number, ref rl_error error) =>
        Native.rl_module_close(number, ref error);
  }

  internal sealed class LanguageModelHandle : NativeHandle {
    internal LanguageModelHandle(IntPtr number, PinnedProgram program) : base(number, program) {}

    protected override int Close(IntPtr number, ref rl_error error) =>
        Native.rl_llm_close(number, ref error);
  }

  internal sealed class SessionHandle : NativeHandle {
    internal SessionHandle(IntPtr number, PinnedProgram program) : base(number, program) {}

    protected override int Close(IntPtr number, ref rl_error error) =>
        Native.rl_session_close(number, ref error);
  }

  internal sealed class GrammarHandle : NativeHandle {
    internal GrammarHandle(IntPtr number, PinnedProgram program) : base(number, program) {}

    protected override int Close(IntPtr number, ref rl_error error) =>
        Native.rl_grammar_close(number, ref error);
  }

  internal sealed class AdapterHandle : NativeHandle {
    internal AdapterHandle(IntPtr number, PinnedProgram program) : base(number, program) {}

    protected override int Close(IntPtr number, ref rl_error error) =>
        Native.rl_adapter_close(number, ref error);
  }

  /// <summary>Managed memory that stays where it is for the time of a call.</summary>
  internal sealed class Pins : IDisposable {
    private readonly List<GCHandle> pins = new List<GCHandle>();
    private readonly List<NativeHandle> handles = new List<NativeHandle>();

    internal IntPtr Add(object array) {
      if (array == null) return IntPtr.Zero;
      GCHandle pin = GCHandle.Alloc(array, GCHandleType.Pinned);
      pins.Add(pin);
      return pin.AddrOfPinnedObject();
    }

    internal rl_text_v1 AddText(string text) {
      byte[] bytes = System.Text.Encoding.UTF8.GetBytes(text);
      return new rl_text_v1 { data = Add(bytes), size = (UIntPtr)(uint)bytes.Length };
    }

    /// <summary>An array of pointers to texts; Zero for none.</summary>
    internal IntPtr AddPaths(string what, IList<string> paths) {
      if (paths == null || paths.Count == 0) return IntPtr.Zero;
      var pointers = new IntPtr[paths.Count];
      for (int i = 0; i < pointers.Length; i++) pointers[i] = Add(Call.Required(what, paths[i]));
      return Add(pointers);
    }

    /// <summary>The number of a handle, which is not closed meanwhile; Zero for null.</summary>
    internal IntPtr AddHandle(NativeHandle handle, string what) {
      if (handle == null) return IntPtr.Zero;
      bool isAdded = false;
      if (handle.IsClosed) throw new ObjectDisposedException("Rushlight." + what);
      handle.DangerousAddRef(ref isAdded);
      handles.Add(handle);
      return handle.DangerousGetHandle();
    }

    public void Dispose() {
      foreach (GCHandle pin in pins) pin.Free();
      foreach (NativeHandle handle in handles) handle.DangerousRelease();
      pins.Clear();
      handles.Clear();
    }
  }
}
