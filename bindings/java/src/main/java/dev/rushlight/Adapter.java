package dev.rushlight;

/** An adapter (LoRA) of a model, for {@link GenerateOptions#adapter}: {@link LanguageModel#adapter}. */
public final class Adapter extends Handle {
  Adapter(long handle) {
    super(handle);
  }

  @Override
  void closeHandle(long handle) {
    closeAdapter(handle);
  }

  private static native void closeAdapter(long adapter);
}
