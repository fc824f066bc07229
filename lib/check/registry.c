#include "config.h"
#include "check/check.h"
#include "check/rules.gen.h"
