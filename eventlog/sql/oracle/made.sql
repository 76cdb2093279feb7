begin
  return {text};
/
