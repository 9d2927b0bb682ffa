/* Says whether the library was built without clocks. */
#include "expect.h"

int main(void) {
    printf("%d\n", bare());
    return 0;
}
