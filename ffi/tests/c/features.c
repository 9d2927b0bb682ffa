/* Says which features the library was built with. */
#include "expect.h"

int main(void) {
    printf("%s%s%s\n", bare() ? "" : "std ", lives() ? "heap " : "", spreads() ? "shards" : "");
    return 0;
}
