// The precompiled headers of the tests belong to a target, and an executable compiles as they do.
int main() {}
