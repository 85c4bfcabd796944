// How texts are generated, and what is told of them.
using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Rushlight {
  /// <summary>How texts are generated; LanguageModel.DefaultOptions() has what the model's makers
  /// recommend.</summary>
  public sealed class GenerateOptions {
    /// <summary>Texts for the prompt; 1 in a session.</summary>
    public uint N;

    /// <summary>Tokens of output; 0: as many as the context has room for.</summary>
    public ulong MaxTokens;

    public ulong Seed;

    /// <summary>0: always the most probable token.</summary>
    public float Temperature;

    public float TopP;
    public float MinP;
    public float TypicalP;

    /// <summary>0: all.</summary>
    public uint TopK;

    public float RepetitionPenalty;
    public float PresencePenalty;
    public float FrequencyPenalty;

    /// <summary>Texts that end the output, which are not part of it.</summary>
    public string[] Stop = new string[0];

    /// <summary>Tokens that end the output, besides the model's own.</summary>
    public int[] StopTokens = new int[0];

    /// <summary>The model's own end tokens do not end the output.</summary>
    public bool IgnoresEnd;

    /// <summary>The output begins with the prompt.</summary>
    public bool Echoes;

    /// <summary>The text has the special tokens.</summary>
    public bool HasSpecial;

    /// <summary>In a full context, half of what follows `Keep` tokens is dropped.</summary>
    public bool Shifts;

    public ulong Keep;

    /// <summary>The most tokens that speculation proposes; 0: none.</summary>
    public uint Guesses;

    /// <summary>Pieces have log probabilities.</summary>
    public bool Logprobs;

    /// <summary>What the text may be; null: anything.</summary>
    public Grammar Grammar;

    /// <summary>null: the model alone, or the session's own.</summary>
    public Adapter Adapter;

    internal GenerateOptions(rl_generate_options options) {
      N = options.n;
      MaxTokens = options.max_tokens;
      Seed = options.seed;
      Temperature = options.temperature;
      TopP = options.top_p;
      MinP = options.min_p;
      TypicalP = options.typical_p;
      TopK = options.top_k;
      RepetitionPenalty = options.repetition_penalty;
      PresencePenalty = options.presence_penalty;
      FrequencyPenalty = options.frequency_penalty;
      IgnoresEnd = options.ignores_end != 0;
      Echoes = options.echoes != 0;
      HasSpecial = options.has_special != 0;
      Shifts = options.shifts != 0;
      Keep = options.keep;
      Guesses = options.guesses;
      Logprobs = options.logprobs >= 0;
    }

    internal rl_generate_options Lend(Pins pins) {
      var stop = new rl_text_v1[Stop?.Length ?? 0];
      for (int i = 0; i < stop.Length; i++) {
        if (Stop[i] == null) throw new ArgumentNullException("Stop[" + i + "]");
        stop[i] = pins.AddText(Stop[i]);
      }
      return new rl_generate_options {
        size = Call.SizeOf<rl_generate_options>(),
        n = N,
        max_tokens = MaxTokens,
        seed = Seed,
        temperature = Temperature,
        top_p = TopP,
        min_p = MinP,
        typical_p = TypicalP,
        top_k = TopK,
        repetition_penalty = RepetitionPenalty,
        presence_penalty = PresencePenalty,
        frequency_penalty = FrequencyPenalty,
        stop = pins.Add(stop),
        n_stop = (uint)stop.Length,
        stop_tokens = pins.Add(StopTokens),
        n_stop_tokens = (uint)(StopTokens?.Length ?? 0),
        ignores_end = IgnoresEnd ? 1u : 0u,
        echoes = Echoes ? 1u : 0u,
        has_special = HasSpecial ? 1u : 0u,
        shifts = Shifts ? 1u : 0u,
        keep = Keep,
        guesses = Guesses,
        logprobs = Logprobs ? 0 : -1,
        grammar = pins.AddHandle(Grammar?.Handle, "Grammar"),
        adapter = pins.AddHandle(Adapter?.Handle, "Adapter")
      };
    }
  }

  /// <summary>Why a text ended.</summary>
  public enum Finish { None = 0, Stop = 1, Length = 2, Context = 3, Cancelled = 4, Failed = 5 }

  /// <summary>What is new of a text.</summary>
  public sealed class Piece {
    /// <summary>Which of the texts.</summary>
    public int Choice { get; }

    /// <summary>Whole characters.</summary>
    public string Text { get; }

    /// <summary>None while a long prompt is read, and in a last piece.</summary>
    public int[] Tokens { get; }

    /// <summary>Of the tokens; none unless they were asked for.</summary>
    public float[] Logprobs { get; }

    /// <summary>None while it goes on.</summary>
    public Finish Finish { get; }

    internal Piece(ref rl_piece piece) {
      Choice = (int)piece.choice;
      Text = Call.Copy(piece.text);
      Tokens = new int[piece.n_tokens];
      if (Tokens.Length > 0) Marshal.Copy(piece.tokens, Tokens, 0, Tokens.Length);
      Logprobs = new float[piece.logprobs == IntPtr.Zero ? 0 : Tokens.Length];
      if (Logprobs.Length > 0) Marshal.Copy(piece.logprobs, Logprobs, 0, Logprobs.Length);
      Finish = (Finish)piece.finish;
    }
  }

  /// <summary>What a call of Generate() has done. Times are of a clock of any origin.</summary>
  public sealed class Statistics {
    /// <summary>Why the last text ended.</summary>
    public Finish Finish { get; }

    public ulong PromptTokens { get; }

    /// <summary>Tokens of the prompt that were in the cache.</summary>
    public ulong ReusedTokens { get; }

    /// <summary>Tokens of all texts.</summary>
    public ulong OutputTokens { get; }

    public ulong SubmittedNs { get; }
    public ulong StartedNs { get; }
    public ulong FirstTokenNs { get; }
    public ulong FinishedNs { get; }

    internal Statistics(rl_statistics from) {
      Finish = (Finish)from.finish;
      PromptTokens = from.prompt_tokens;
      ReusedTokens = from.reused_tokens;
      OutputTokens = from.output_tokens;
      SubmittedNs = from.submitted_ns;
      StartedNs = from.started_ns;
      FirstTokenNs = from.first_token_ns;
      FinishedNs = from.finished_ns;
    }
  }

  /// <summary>A message of a conversation.</summary>
  public sealed class Message {
    /// <summary>Who says it: "system", "user", "assistant", or what else the model's template
    /// knows.</summary>
    public string Role { get; }

    public string Content { get; }

    public Message(string role, string content) {
      Role = role ?? throw new ArgumentNullException(nameof(role));
      Content = content ?? throw new ArgumentNullException(nameof(content));
    }

    /// <summary>The variables of a chat template, with a prompt for an answer at the end.</summary>
    internal static string ToJson(IEnumerable<Message> messages) {
      var json = new StringBuilder("{\"messages\":[");
      string comma = "";
      foreach (Message message in messages) {
        json.Append(comma).Append("{\"role\":");
        Write(message.Role, json);
        json.Append(",\"content\":");
        Write(message.Content, json);
        json.Append('}');
        comma = ",";
      }
      return json.Append("],\"add_generation_prompt\":true}").ToString();
    }

    private static void Write(string text, StringBuilder json) {
      json.Append('"');
      foreach (char c in text) {
        if (c == '"' || c == '\\') json.Append('\\');
        if (c < ' ') {
          json.Append("\\u").Append(((int)c).ToString("x4"));
        } else {
          json.Append(c);
        }
      }
      json.Append('"');
    }
  }

  internal delegate int Generation(ref rl_generate_options options, rl_piece_fn write,
                                   ref rl_statistics statistics, ref rl_error error);

  internal static class Generating {
    /// <summary>Tells a listener of pieces until it returns false, throws, or the token is
    /// cancelled.</summary>
    internal static Statistics Run(GenerateOptions options, Func<Piece, bool> listener,
                                   CancellationToken token, Action<NativeCall> check,
                                   Generation generate) {
      token.ThrowIfCancellationRequested();
      ExceptionDispatchInfo thrown = null;
      bool isCancelled = false;
      rl_piece_fn write = (IntPtr userdata, ref rl_piece piece) => {
        try {
          isCancelled |= token.IsCancellationRequested;
          if (isCancelled) return 1;
          return listener == null || listener(new Piece(ref piece)) ? 0 : 1;
        } catch (Exception error) {
          thrown = ExceptionDispatchInfo.Capture(error);
          return 1;
        }
      };
      var statistics = new rl_statistics { size = Call.SizeOf<rl_statistics>() };
      using (var pins = new Pins()) {
        rl_generate_options lent = options.Lend(pins);
        check((ref rl_error error) => generate(ref lent, write, ref statistics, ref error));
      }
      GC.KeepAlive(write);
      thrown?.Throw();
      if (isCancelled) throw new OperationCanceledException(token);
      return new Statistics(statistics);
    }
  }
}
