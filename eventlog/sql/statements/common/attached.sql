select attached from {state}
/
