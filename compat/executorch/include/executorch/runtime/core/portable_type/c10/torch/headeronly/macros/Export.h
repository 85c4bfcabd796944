// Marks of exported symbols: nothing is exported, since everything is linked statically.
#pragma once

#define C10_EXPORT
#define C10_IMPORT
#define C10_HIDDEN
#define C10_API
#define TORCH_API
#define C10_API_ENUM
