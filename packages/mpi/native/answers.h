#pragma once

#include "operation.h"

namespace skein {

Completion refusal(const Command& command, Outcome outcome, const char* message);

/** Put MPI's own words for `code` into an answer; the first failure of an operation stays. */
void describeFailure(Completion& answer, const char* call, int code);

/** Compare what arrived with what was to come: another tag, fewer bytes or more are a mismatch. */
void checkArrival(Completion& answer, const Awaited& awaited, const MPI_Status& status);

/** Compare what all ranks are about to do. */
void checkAgreement(Operation& operation);

size_t bytesUnderWay(const Command& command);

}  // namespace skein
