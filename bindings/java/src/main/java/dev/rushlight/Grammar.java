package dev.rushlight;

/**
 * What a text may be, for {@link GenerateOptions#grammar}: {@link
 * LanguageModel#grammarFromRegex(String)}, {@link LanguageModel#grammarFromJsonSchema(String)}.
 */
public final class Grammar extends Handle {
  Grammar(long handle) {
    super(handle);
  }

  @Override
  void closeHandle(long handle) {
    closeGrammar(handle);
  }

  private static native void closeGrammar(long grammar);
}
