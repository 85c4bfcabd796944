// Sessions of language models.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Threading;

namespace Rushlight {
  /// <summary>A text that is kept, with its cache. One thread at a time may use it, except for
  /// Cancel() and Dispose().</summary>
  public sealed class Session : IDisposable {
    private readonly SessionHandle handle;

    internal Session(IntPtr number, PinnedProgram program) {
      handle = new SessionHandle(number, program);
    }

    /// <summary>Closes it, once a call that another thread is in has returned.</summary>
    public void Dispose() {
      handle.Dispose();
    }

    private void Check(NativeCall call) {
      if (handle.IsClosed) throw new ObjectDisposedException("Rushlight.Session");
      Call.Check(call);
    }

    /// <summary>Adds the prompt to the text, and then what is generated; returns when it has ended.
    /// `listener` is told of pieces on this thread, and returns false to end the text; what it throws
    /// comes out of this.</summary>
    public Statistics Generate(int[] prompt, GenerateOptions options, Func<Piece, bool> listener,
                               CancellationToken token = default(CancellationToken)) {
      if (prompt == null) throw new ArgumentNullException(nameof(prompt));
      if (options == null) throw new ArgumentNullException(nameof(options));
      var n = (UIntPtr)(uint)prompt.Length;
      return Generating.Run(
          options, listener, token, Check,
          (ref rl_generate_options lent, rl_piece_fn write, ref rl_statistics statistics,
           ref rl_error error) => Native.rl_session_generate(
               handle, prompt, n, ref lent, write, IntPtr.Zero, ref statistics, ref error));
    }

    /// <summary>The same text by text, which a thread of its own generates while they are read. What
    /// fails comes out of the loop; leaving the loop ends the text.</summary>
    public IEnumerable<string> Texts(int[] prompt, GenerateOptions options,
                                     CancellationToken token = default(CancellationToken)) {
      ExceptionDispatchInfo thrown = null;
      using (var texts = new BlockingCollection<string>(64))
      using (var stop = new CancellationTokenSource()) {
        var thread = new Thread(() => {
          try {
            Generate(prompt, options, piece => Add(piece.Text, texts, stop.Token), token);
          } catch (Exception error) {
            thrown = ExceptionDispatchInfo.Capture(error);
          } finally {
            texts.CompleteAdding();
          }
        });
        thread.IsBackground = true;
        thread.Name = "rushlight texts";
        thread.Start();
        try {
          foreach (string text in texts.GetConsumingEnumerable()) yield return text;
        } finally {
          stop.Cancel();
          thread.Join();
        }
        thrown?.Throw();
      }
    }

    /// <summary>Hands a text over; false if nobody reads any more.</summary>
    private static bool Add(string text, BlockingCollection<string> texts, CancellationToken stop) {
      if (stop.IsCancellationRequested) return false;
      try {
        if (text.Length > 0) texts.Add(text, stop);
        return true;
      } catch (OperationCanceledException) {
        return false;
      }
    }

    /// <summary>Ends what another thread generates, at the next token. Does nothing if there is
    /// none.</summary>
    public void Cancel() {
      Check((ref rl_error error) => Native.rl_session_cancel(handle, ref error));
    }

    /// <summary>A session with the same text, which shares its cache.</summary>
    public Session Fork() {
      IntPtr copy = IntPtr.Zero;
      Check((ref rl_error error) => Native.rl_session_fork(handle, out copy, ref error));
      return new Session(copy, handle.Program);
    }

    /// <summary>Drops the last tokens.</summary>
    public void Rewind(ulong count) {
      Check((ref rl_error error) =>
          Native.rl_session_rewind(handle, (UIntPtr)count, ref error));
    }

    /// <summary>Replaces the text; the cache of what both begin with is kept.</summary>
    public void SetTokens(int[] tokens) {
      if (tokens == null) throw new ArgumentNullException(nameof(tokens));
      var n = (UIntPtr)(uint)tokens.Length;
      Check((ref rl_error error) =>
          Native.rl_session_set_tokens(handle, tokens, n, ref error));
    }

    /// <summary>The tokens of the text.</summary>
    public int[] Tokens() {
      UIntPtr count = UIntPtr.Zero;
      Check((ref rl_error error) =>
          Native.rl_session_tokens(handle, null, UIntPtr.Zero, out count, ref error));
      var tokens = new int[checked((int)count.ToUInt64())];
      Check((ref rl_error error) =>
          Native.rl_session_tokens(handle, tokens, count, out count, ref error));
      return tokens;
    }

    /// <summary>Writes the text and its cache to a file, for LanguageModel.Restore().</summary>
    public void Save(string path) {
      byte[] name = Call.Required(nameof(path), path);
      Check((ref rl_error error) => Native.rl_session_save(handle, name, ref error));
    }
  }
}
