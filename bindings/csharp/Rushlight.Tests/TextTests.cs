// Language models write what they write in Python.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;

namespace Rushlight.Tests {
  internal static class TextTests {
    private static string ModelPath => Path.Combine(Program.Golden, "llm", "v1.pte");

    private static LanguageModel Open() =>
        LanguageModel.Open(ModelPath, new LanguageModelOptions { Threads = 1 });

    private static GenerateOptions Greedy(LanguageModel model) {
      GenerateOptions options = model.DefaultOptions();
      options.Temperature = 0;
      options.MaxTokens = 12;
      options.IgnoresEnd = true;
      return options;
    }

    private static GenerateOptions Sampled(LanguageModel model) {
      GenerateOptions options = Greedy(model);
      options.Temperature = 0.9f;
      options.TopK = 20;
      options.TopP = 0.9f;
      options.Seed = 5;
      return options;
    }

    private static int[] Prompt => Program.Numbers<int>("prompt.tokens");

    private static int[] Wanted => Program.Numbers<int>("greedy.tokens");

    public static void TextsAreThoseOfPython() {
      using (LanguageModel model = Open()) {
        foreach (string name in new[] { "greedy", "sampled" }) {
          GenerateOptions options = name == "greedy" ? Greedy(model) : Sampled(model);
          options.Logprobs = true;
          var tokens = new List<int>();
          var logprobs = new List<float>();
          string text = "";
          Func<Piece, bool> read = piece => {
            tokens.AddRange(piece.Tokens);
            logprobs.AddRange(piece.Logprobs);
            text += piece.Text;
            return true;
          };
          Statistics statistics = model.Generate(Prompt, options, read);
          int[] wanted = Program.Numbers<int>(name + ".tokens");
          Program.Equal(tokens.ToArray(), wanted, name);
          Program.Check(text == Program.Text(name + ".txt"), text);
          Program.Check(statistics.Finish == Finish.Length && statistics.OutputTokens == 12, "end");
          Program.Check(logprobs.Count == 12 && logprobs.All(p => p <= 0), "logprobs");
          tokens.Clear();
          using (Session session = model.NewSession()) {
            session.Generate(Prompt, options, read);
            Program.Equal(session.Tokens(), Prompt.Concat(wanted).ToArray(), "in a session");
          }
        }
      }
    }

    public static void EnumerablesOfTexts() {
      using (LanguageModel model = Open())
      using (Session session = model.NewSession()) {
        GenerateOptions options = Greedy(model);
        string all = string.Concat(session.Texts(Prompt, options));
        Program.Check(all == Program.Text("greedy.txt"), all);
        // Leaving the loop ends a text that has no end.
        options.MaxTokens = 1ul << 40;
        options.Shifts = true;
        foreach (string text in session.Texts(Prompt, options)) {
          Program.Check(text.Length > 0, "a text");
          break;
        }
        Program.Check(session.Tokens().Length > 0, "the session is free");
        using (var source = new CancellationTokenSource()) {
          Program.Throws<OperationCanceledException>("", () => {
            foreach (string text in session.Texts(Prompt, options, source.Token)) source.Cancel();
          });
        }
        options.TopP = 9;
        Program.Fails(ErrorCode.InvalidArgument, "top_p",
                      () => session.Texts(Prompt, options).ToList());
        Program.Throws<ArgumentNullException>("prompt",
                                              () => session.Texts(null, options).ToList());
      }
    }

    public static void TokenizerAndChat() {
      using (LanguageModel model = Open()) {
        for (int i = 0; i < 5; i++) {
          int[] tokens = Program.Numbers<int>("text_" + i + ".tokens");
          string text = System.Text.Encoding.UTF8.GetString(Program.Bytes("text_" + i + ".txt"));
          Program.Equal(model.Encode(text), tokens, "tokens of " + text);
          string decoded = System.Text.Encoding.UTF8.GetString(
              Program.Bytes("text_" + i + ".decoded"));
          Program.Check(model.Decode(tokens) == decoded, "text " + i);
        }
        int[] special = model.Encode("<|user|>", false, true);
        Program.Check(special.Length == 1 && model.Decode(special) == "", "special");
        Program.Check(model.Decode(special, false) == "<|user|>", "its name");
        Program.Check(model.Encode("<|user|>", false).Length > 1, "of others");
        int[] chat = model.EncodeMessages(
            new Message("user", "say \"hi\"\n\\ \u00e9 \ud83d\ude00"));
        Program.Equal(chat, Program.Numbers<int>("chat.tokens"), "chat");
        Program.Fails(ErrorCode.InvalidArgument, "", () => model.EncodeChat("{"));
        Program.Check(model.Decode(new[] { -1, int.MaxValue }) == "", "tokens that there are not");
        LanguageModelInfo info = model.Describe();
        Program.Check(info.HasTokenizer && info.HasChatTemplate && info.Context > 1, "info");
      }
    }

    public static void Sessions() {
      string file = Path.Combine(Program.Data, "csharp.session");
      LanguageModel model = Open();
      GenerateOptions options = Greedy(model);
      using (Session session = model.NewSession()) {
        session.Generate(Prompt, options, null);
        session.Save(file);
        using (Session fork = session.Fork())
        using (Session again = model.Restore(file)) {
          Program.Equal(again.Tokens(), session.Tokens(), "restored");
          fork.Rewind(12);
          Program.Equal(fork.Tokens(), Prompt, "rewound");
          again.SetTokens(Prompt);
          Program.Equal(again.Tokens(), Prompt, "set");
        }
        Program.Fails(ErrorCode.InvalidArgument, "", () => session.Rewind(10000));
        File.WriteAllBytes(file, File.ReadAllBytes(file).Take(100).ToArray());
        Program.Fails(ErrorCode.InvalidExternalData, "", () => model.Restore(file));
        Program.Fails(ErrorCode.AccessFailed, "", () => model.Restore("no/file"));
        Program.Fails(ErrorCode.AccessFailed, "", () => session.Save("no/folder/session"));
        model.Dispose();
        Program.Throws<ObjectDisposedException>("Rushlight.LanguageModel", () => model.Encode("a"));
        session.Rewind(12);
        session.Generate(new int[0], options, null);  // the session keeps the model
        Program.Equal(session.Tokens(), Prompt.Concat(Wanted).ToArray(), "without the model");
      }
    }

    public static void ListenersThatStopAndThatThrow() {
      using (LanguageModel model = Open())
      using (Session session = model.NewSession()) {
        GenerateOptions options = Greedy(model);
        int told = 0;
        Statistics statistics =
            model.Generate(Prompt, options, piece => (told += piece.Tokens.Length) < 2);
        Program.Check(told == 2 && statistics.Finish == Finish.Cancelled, "stopped");
        Program.Throws<FormatException>("the listener's own", () => session.Generate(
            Prompt, options, piece => { throw new FormatException("the listener's own"); }));
        Program.Fails(ErrorCode.InvalidState, "not from its own callbacks", () => session.Generate(
            Prompt, options, piece => session.Tokens().Length > 0));
        string joined = "";
        model.Generate(Prompt, options, piece => {
          joined += model.Decode(piece.Tokens);  // the tokenizer may be used meanwhile
          return true;
        });
        Program.Check(joined.Length > 0, "decoded in the listener");
        Program.Check(session.Generate(Prompt, options, null).OutputTokens == 12, "and again");
      }
    }

    public static void Cancelling() {
      using (LanguageModel model = Open())
      using (Session session = model.NewSession())
      using (var source = new CancellationTokenSource(30)) {
        GenerateOptions options = Greedy(model);
        options.MaxTokens = 1ul << 40;
        options.Shifts = true;
        Program.Throws<OperationCanceledException>(
            "", () => model.Generate(Prompt, options, null, source.Token));
        bool isOver = false;
        var other = new Thread(() => {
          while (!Volatile.Read(ref isOver)) session.Cancel();
        });
        other.Start();
        Statistics statistics = session.Generate(Prompt, options, null);
        Volatile.Write(ref isOver, true);
        other.Join();
        Program.Check(statistics.Finish == Finish.Cancelled, "by another thread");
      }
    }

    public static void SeveralTextsAndStops() {
      using (LanguageModel model = Open()) {
        GenerateOptions options = Sampled(model);
        options.N = 3;
        options.MaxTokens = 6;
        var counts = new int[3];
        model.Generate(Prompt, options, piece => {
          counts[piece.Choice] += piece.Tokens.Length;
          return true;
        });
        Program.Equal(counts, new[] { 6, 6, 6 }, "three texts");
        string whole = Program.Text("greedy.txt"), stop = whole.Substring(3, 2), text = "";
        options = Greedy(model);
        options.Stop = new[] { stop };
        Statistics statistics = model.Generate(Prompt, options, piece => {
          text += piece.Text;
          return true;
        });
        Program.Check(text == whole.Substring(0, whole.IndexOf(stop)), text);
        Program.Check(statistics.Finish == Finish.Stop, "stopped");
        options = Greedy(model);
        options.StopTokens = new[] { Wanted[4] };
        Program.Check(model.Generate(Prompt, options, null).Finish == Finish.Stop, "by a token");
        options.TopP = 9;
        Program.Fails(ErrorCode.InvalidArgument, "top_p",
                      () => model.Generate(Prompt, options, null));
      }
    }

    public static void Grammars() {
      using (LanguageModel model = Open())
      using (Session session = model.NewSession()) {
        GenerateOptions options = Greedy(model);
        options.IgnoresEnd = false;
        using (options.Grammar = model.GrammarFromJsonSchema("{\"enum\": [\"yes\", \"no\"]}")) {
          string text = string.Concat(session.Texts(Prompt, options));
          Program.Check(text == "\"yes\"" || text == "\"no\"", text);
        }
        Program.Throws<ObjectDisposedException>("Grammar",
                                                () => model.Generate(Prompt, options, null));
        Program.Fails(ErrorCode.InvalidArgument, "", () => model.GrammarFromRegex("("));
        Program.Fails(ErrorCode.AccessFailed, "", () => model.OpenAdapter("no/file"));
      }
    }

    public static void Traces() {
      using (LanguageModel model = Open()) {
        Program.Fails(ErrorCode.InvalidState, "", () => model.TraceWrite(new MemoryStream()));
        model.TraceStart();
        model.Generate(Prompt, Greedy(model), null);
        model.TraceStop();
        model.TraceSave(Path.Combine(Program.Data, "llm_csharp.etdp"));
        var written = new MemoryStream();
        model.TraceWrite(written);
        Program.Equal(written.ToArray(), Program.Bytes("llm_csharp.etdp"), "the same trace");
      }
    }

    public static void Embeddings() {
      using (LanguageModel model = Open()) {
        float[][] vectors = model.Embed(new[] { "a lamp", "the light" });
        float[] wanted = Program.Numbers<float>("embedded.bin");
        Program.Equal(vectors.SelectMany(v => v).ToArray(), wanted, "vectors");
        Program.Check(model.Embed(new string[0]).Length == 0, "of nothing");
      }
    }

    public static void ModelsInMemoryAndFilesThatAreNone() {
      byte[] file = File.ReadAllBytes(ModelPath);
      LanguageModel model =
          LanguageModel.Open((byte[])file.Clone(), new LanguageModelOptions { Threads = 1 });
      GenerateOptions options = Greedy(model);
      using (Session session = model.NewSession()) {
        model.Dispose();
        model = null;
        GC.Collect();
        GC.WaitForPendingFinalizers();
        string all = string.Concat(session.Texts(Prompt, options));
        Program.Check(all == Program.Text("greedy.txt"), all);  // it keeps the memory
      }
      string add = Path.Combine(Program.Golden, "add.pte");
      Program.Fails(ErrorCode.NotSupported, "", () => LanguageModel.Open(add));
      Program.Throws<RushlightException>(
          "", () => LanguageModel.Open(file.Take(file.Length / 2).ToArray()));
    }
  }
}
